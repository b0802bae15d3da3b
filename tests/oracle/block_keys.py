"""Prints the digests that tests/base/keyed_hash_test.cc, tests/scheduler/namespace_minter_test.cc and
tests/scheduler/block_keys_test.cc compare with. Uses Python's own hashlib only: python3 tests/oracle/block_keys.py"""
import hashlib
import struct


def field(tag, data):
    return bytes([tag]) + struct.pack("<Q", len(data)) + data


def u64(value):
    return struct.pack("<Q", value)


def tokens(*ids):
    return struct.pack(f"<{len(ids)}I", *ids)


def keyed(key, *fields):
    return hashlib.blake2b(b"".join(fields), key=key, digest_size=32).digest()


counting = bytes(range(32))
print("no field   ", keyed(counting).hex())
print("three fields", keyed(counting, field(1, b"abc"), field(2, u64(7)), field(3, tokens(1, 2, 70000))).hex())

secret = bytes([1, 2, 3]) + bytes(29)
version = field(1, u64(1))
tenant = keyed(secret, version, field(2, b"tenant"), field(3, b"default"))
print("tenant     ", tenant.hex())
print("with salt  ", keyed(secret, version, field(2, b"tenant and salt"), field(3, b"default"), field(4, b"pepper")).hex())
print("one request", keyed(secret, version, field(2, b"one request"), field(5, u64(9))).hex())

folded = keyed(
    tenant, field(1, u64(5)), field(2, bytes([9] * 32)), field(3, u64(0)), field(4, u64(1)), field(5, u64(1)),
    field(6, u64(4)), field(7, b"rope"), field(8, b"cpu"))
root = keyed(folded, field(19, b"root"))
first = keyed(folded, field(16, root), field(17, tokens(1, 2, 3, 4)))
print("root       ", root.hex())
print("first      ", first.hex())
print("second     ", keyed(folded, field(16, first), field(17, tokens(5, 6, 7, 8))).hex())
print("partial    ", keyed(folded, field(16, first), field(18, tokens(5, 6))).hex())
