"""What Redis does for the answer cache as a whole, in Lua. `ARGV[1]` is the prefix of all keys.

Keys, each behind the prefix:
    answer:SCOPE:DIGEST         hash  body, meta (what a list shows), hits; expires by itself
    questions:SCOPE:PARTITION   hash  digest to question and vector, if any; expires with its last
    scope:SCOPE                 zset  digests by when they were used
    lru                         zset  SCOPE:DIGEST by the same, of all scopes
    expiry                      zset  SCOPE:DIGEST by when they expire
    records                     hash  SCOPE:DIGEST to "size partition"
    sizes                       hash  scope to the sum of its sizes; "" of all
    rejections:SCOPE:PARTITION  list  newest first
    cleared:SCOPE               hash  what was cleared to when; expires after a day
    rejected:SCOPE              set   partitions with rejections
    log:SCOPE, judged:SCOPE     hash  decision id to decision, and to what a person said
    order:SCOPE                 zset  decision ids by time
    near:SCOPE                  zset  the same of near misses of which nobody said anything
    counts:SCOPE                hash  "n", "t" or "s" and kind, reason and model, one a line, to
                                      how many decisions, saved tokens and saved seconds

An answer may be gone before its places in the indexes: it expired, or Redis needed room. Those go
with the next answers that are kept.
"""

from __future__ import annotations

_FORGET = """
local P = ARGV[1]
local function add(scope, size)
  for _, of in ipairs({scope, ''}) do
    if redis.call('HINCRBY', P..'sizes', of, size) <= 0 then redis.call('HDEL', P..'sizes', of) end
  end
end
local function unrecord(scope, digest, but)
  local member = scope..':'..digest
  local record = redis.call('HGET', P..'records', member)
  if not record then return end
  local size, partition = string.match(record, '^(%d+) (%x+)$')
  add(scope, -tonumber(size))
  redis.call('HDEL', P..'records', member)
  if partition ~= but then redis.call('HDEL', P..'questions:'..scope..':'..partition, digest) end
end
local function forget(scope, digest)
  local member = scope..':'..digest
  redis.call('ZREM', P..'lru', member)
  redis.call('ZREM', P..'expiry', member)
  redis.call('ZREM', P..'scope:'..scope, digest)
  unrecord(scope, digest, '')
  return redis.call('UNLINK', P..'answer:'..member)
end
local function forget_member(member)
  local scope, digest = string.match(member, '^(.*):(%x+)$')
  forget(scope, digest)
end
"""

# The first write is the one that Redis refuses where it is full or may only be read: then nothing
# has been changed.
_PUT = (
    _FORGET
    + """
local scope, digest, partition, size, lives_ms = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local created_s, expires_s, cap, at_once = ARGV[7], ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10])
local ahead_s, body, meta, question = ARGV[11], ARGV[12], ARGV[13], ARGV[14]
local begun_s, cleared_kept_s, model_name = tonumber(ARGV[15]), tonumber(ARGV[16]), ARGV[17]
local member = scope..':'..digest
for _, at_s in ipairs(redis.call('HMGET', P..'cleared:'..scope, '', model_name)) do
  if at_s and begun_s <= tonumber(at_s) and tonumber(at_s) < begun_s + cleared_kept_s then return end
end
redis.call('HSET', P..'answer:'..member, 'body', body, 'meta', meta, 'hits', 0)
redis.call('PEXPIRE', P..'answer:'..member, lives_ms)
-- Where Redis threw out a part of the indexes, what is counted is not what is there: count anew.
local recorded = redis.call('HLEN', P..'records')
if redis.call('ZCARD', P..'lru') ~= recorded or redis.call('ZCARD', P..'expiry') ~= recorded
    or (recorded > 0) ~= (redis.call('HEXISTS', P..'sizes', '') == 1) then
  redis.call('UNLINK', P..'lru', P..'expiry', P..'records', P..'sizes')
end
unrecord(scope, digest, partition)
local questions = P..'questions:'..scope..':'..partition
local left_ms = redis.call('PTTL', questions)
redis.call('HSET', questions, digest, question)
if left_ms < tonumber(lives_ms) then redis.call('PEXPIRE', questions, lives_ms) end
redis.call('HSET', P..'records', member, size..' '..partition)
redis.call('ZADD', P..'lru', created_s, member)
redis.call('ZADD', P..'expiry', expires_s, member)
redis.call('ZADD', P..'scope:'..scope, created_s, digest)
add(scope, tonumber(size))
for _, each in ipairs(redis.call('ZRANGEBYSCORE', P..'expiry', '-inf', created_s, 'LIMIT', 0, at_once)) do
  forget_member(each)
end
for _, each in ipairs(redis.call('ZRANGEBYSCORE', P..'lru', '('..ahead_s, '+inf', 'LIMIT', 0, at_once)) do
  forget_member(each)
end
for _ = 1, at_once do
  if tonumber(redis.call('HGET', P..'sizes', '') or 0) <= cap then break end
  local oldest = redis.call('ZRANGE', P..'lru', 0, 1)
  local leaving = oldest[1]
  if leaving == member then leaving = oldest[2] end
  if not leaving then break end
  forget_member(leaving)
end
"""
)

# `string_bytes` is `_string` of cache_redis.py.
_EMBED = (
    _FORGET
    + """
local scope, partition, digest, embedding, vector = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local function string_bytes(length)
  local wanted = length + 1 + (length < 256 and 3 or length < 65536 and 5 or 9)
  local step = 16
  while wanted > 8 * step do step = step * 2 end
  return wanted <= 8 and 8 or math.ceil(wanted / step) * step
end
local questions, member = P..'questions:'..scope..':'..partition, scope..':'..digest
local old = redis.call('HGET', questions, digest)
local record = redis.call('HGET', P..'records', member)
if not old or not record or redis.call('EXISTS', P..'answer:'..member) == 0 then return end
local size, of = string.match(record, '^(%d+) (%x+)$')
if of ~= partition then return end
local _, _, embedding_bytes, question_bytes = struct.unpack('<ddHI', old)
local question = string.sub(old, 23 + embedding_bytes, 22 + embedding_bytes + question_bytes)
local new = string.sub(old, 1, 16)..struct.pack('<HI', #embedding, #question)
  ..embedding..question..vector
redis.call('HSET', questions, digest, new)
local more = string_bytes(#new) - string_bytes(#old)
redis.call('HSET', P..'records', member, (size + more)..' '..partition)
add(scope, more)
"""
)

_USED = """
local P, scope, digest, now_s = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local member = scope..':'..digest
if redis.call('EXISTS', P..'answer:'..member) == 1 then
  redis.call('HINCRBY', P..'answer:'..member, 'hits', 1)
  redis.call('ZADD', P..'lru', 'XX', 'GT', now_s, member)
  redis.call('ZADD', P..'scope:'..scope, 'XX', 'GT', now_s, digest)
end
"""

_DELETE = (
    _FORGET
    + """
local gone = 0
for at = 3, #ARGV do gone = gone + forget(ARGV[2], ARGV[at]) end
return gone
"""
)

_EXPIRED = """
local P, scope, now_s, ahead_s = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local expired, expired_size, expired_count = {}, 0, 0
local function gone(member)
  local of, digest = string.match(member, '^(.*):(%x+)$')
  if of == scope and not expired[digest] then
    expired[digest] = true
    expired_count = expired_count + 1
    local record = redis.call('HGET', P..'records', member)
    if record then expired_size = expired_size + tonumber(string.match(record, '^%d+')) end
  end
end
for _, each in ipairs(redis.call('ZRANGEBYSCORE', P..'expiry', '-inf', now_s)) do gone(each) end
for _, each in ipairs(redis.call('ZRANGEBYSCORE', P..'lru', '('..ahead_s, '+inf')) do gone(each) end
"""

_TOTALS = (
    _EXPIRED
    + """
local size = tonumber(redis.call('HGET', P..'sizes', scope) or 0) - expired_size
local count = redis.call('ZCARD', P..'scope:'..scope) - expired_count
return {math.max(count, 0), math.max(size, 0)}
"""
)

_ENTRIES = (
    _EXPIRED
    + """
local limit, skip = tonumber(ARGV[5]), tonumber(ARGV[6])
local found, at = {}, 0
while #found < limit do
  local used = redis.call('ZREVRANGE', P..'scope:'..scope, at, at + 999, 'WITHSCORES')
  if #used == 0 then break end
  at = at + 1000
  for i = 1, #used, 2 do
    local digest, member = used[i], scope..':'..used[i]
    if not expired[digest] and redis.call('EXISTS', P..'answer:'..member) == 1 then
      if skip > 0 then
        skip = skip - 1
      elseif #found < limit then
        local shown = redis.call('HMGET', P..'answer:'..member, 'meta', 'hits')
        local record = redis.call('HGET', P..'records', member)
        if shown[1] then
          local size, partition = string.match(record or '0 ', '^(%d+) (%x*)$')
          found[#found + 1] = {digest, size, partition, used[i + 1], shown[1], shown[2] or 0}
        end
      end
    end
  end
end
return found
"""
)

_SHOWN = """
local P, scope, found = ARGV[1], ARGV[2], {}
for at = 3, #ARGV do
  local member = scope..':'..ARGV[at]
  local shown = redis.call('HMGET', P..'answer:'..member, 'meta', 'hits')
  local record = redis.call('HGET', P..'records', member)
  found[#found + 1] = {shown[1] or '', shown[2] or '0', record or '0 '}
end
return found
"""

_REJECT = """
local P, scope, partition, kept, kept_s = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local list = P..'rejections:'..scope..':'..partition
redis.call('LPUSH', list, ARGV[6])
redis.call('LTRIM', list, 0, kept - 1)
redis.call('EXPIRE', list, kept_s)
redis.call('SADD', P..'rejected:'..scope, partition)
redis.call('EXPIRE', P..'rejected:'..scope, kept_s)
"""

_NOTE = """
local P, scope, id, at_s, old_s = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local kept, kept_s, body, judged = tonumber(ARGV[6]), ARGV[7], ARGV[8], ARGV[9]
local log, order, said = P..'log:'..scope, P..'order:'..scope, P..'judged:'..scope
local near, counts = P..'near:'..scope, P..'counts:'..scope
local function count(body, sign)
  local ok, told = pcall(cjson.decode, body)
  if not ok or type(told) ~= 'table' or not told.kind then return end
  local of = '\\n'..told.kind..'\\n'..told.reason..'\\n'..told.model
  if redis.call('HINCRBY', counts, 'n'..of, sign) <= 0 then
    redis.call('HDEL', counts, 'n'..of, 't'..of, 's'..of)
    return
  end
  -- Only what was saved: most decisions saved nothing.
  if told.saved_tokens ~= 0 and math.abs(told.saved_tokens) < 2^53 then
    redis.call('HINCRBYFLOAT', counts, 't'..of, string.format('%.0f', sign * told.saved_tokens))
  end
  if told.saved_s ~= 0 and math.abs(told.saved_s) < 2^53 then
    redis.call('HINCRBYFLOAT', counts, 's'..of, string.format('%.17g', sign * told.saved_s))
  end
end
local before = redis.call('HGET', log, id)
redis.call('HSET', log, id, body)
if before then count(before, -1) end
count(body, 1)
redis.call('ZADD', order, at_s, id)
if judged == '' and ARGV[10] == 'near' then
  redis.call('ZADD', near, at_s, id)
else
  redis.call('ZREM', near, id)
end
if judged == '' then redis.call('HDEL', said, id) else redis.call('HSET', said, id, judged) end
local old = redis.call('ZRANGEBYSCORE', order, '-inf', '('..old_s, 'LIMIT', 0, 100)
local surplus = redis.call('ZCARD', order) - kept - #old
if surplus > 0 then
  old = redis.call('ZRANGE', order, 0, math.min(#old + surplus, 100) - 1)
end
for _, each in ipairs(old) do
  local gone = redis.call('HGET', log, each)
  if gone then count(gone, -1) end
  redis.call('ZREM', order, each)
  redis.call('ZREM', near, each)
  redis.call('HDEL', log, each)
  redis.call('HDEL', said, each)
end
for _, key in ipairs({log, order, said, near, counts}) do redis.call('EXPIRE', key, kept_s) end
"""

_DECISIONS = """
local P, scope, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local ids, found = redis.call('ZREVRANGE', P..ARGV[4]..':'..scope, 0, limit - 1), {}
for _, id in ipairs(ids) do
  local body = redis.call('HGET', P..'log:'..scope, id)
  if body then found[#found + 1] = {body, redis.call('HGET', P..'judged:'..scope, id) or ''} end
end
return found
"""

_JUDGE = """
local P, scope, id, same = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('HEXISTS', P..'log:'..scope, id) == 1 then
  redis.call('HSET', P..'judged:'..scope, id, same)
  redis.call('ZREM', P..'near:'..scope, id)
  local left_ms = redis.call('PTTL', P..'log:'..scope)
  if left_ms > 0 then redis.call('PEXPIRE', P..'judged:'..scope, left_ms) end
end
"""

_CLEAR_LOG = """
local P, scope = ARGV[1], ARGV[2]
for _, partition in ipairs(redis.call('SMEMBERS', P..'rejected:'..scope)) do
  redis.call('UNLINK', P..'rejections:'..scope..':'..partition)
end
for _, kind in ipairs({'rejected:', 'log:', 'order:', 'judged:', 'near:', 'counts:'}) do
  redis.call('UNLINK', P..kind..scope)
end
"""

_CLEARED = """
local P, scope, name, at_s, kept_s = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
redis.call('HSET', P..'cleared:'..scope, name, at_s)
redis.call('EXPIRE', P..'cleared:'..scope, kept_s)
"""

SCRIPTS = {
    "put": _PUT,
    "embed": _EMBED,
    "cleared": _CLEARED,
    "used": _USED,
    "delete": _DELETE,
    "entries": _ENTRIES,
    "shown": _SHOWN,
    "totals": _TOTALS,
    "reject": _REJECT,
    "note": _NOTE,
    "decisions": _DECISIONS,
    "judge": _JUDGE,
    "clear_log": _CLEAR_LOG,
}
