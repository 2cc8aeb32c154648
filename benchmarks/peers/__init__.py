"""This app beside other chat pages, over the same stream."""
