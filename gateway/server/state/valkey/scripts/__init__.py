"""Holds the Lua scripts by which a gateway uses Valkey or Redis: each runs whole or not at all.

They need Redis 7.0 or Valkey. The comment above each script names its `KEYS` and `ARGV`.

Names of keys (`{T}` stands for the tenant, E for the epoch):

    dg1:{T}:epoch           the record of the present epoch, 32 random bytes
    dg1:{T}:E:SPACE:K       an entry: `VERSION:` and the sealed value
    dg1:{T}:E:lease:K       the token of a held lease
    dg1:{T}:E:index         sorted set of `SPACE:K:SIZE` by the time of expiry, in milliseconds
    dg1:{T}:E:sizes         hash: bytes as a whole, bytes and entries by space
    dg1:{T}:rate            when the next request of a key is due at an even pace, in microseconds
    dg1:{T}:running         hash of running requests: `COUNT:DEADLINE` by process, in microseconds
    dg1:{T}:counted:P       how many requests of the process P the rate contains, as P counts them
    dg1:epochs              set of `{T}:E` that have an index

Versions and tokens of leases are the server's time in microseconds, or one more than the previous: they grow even when
the server has lost what it kept.
"""
