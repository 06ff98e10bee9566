"""FarmHash's 64-bit fingerprint, by which `tf.strings.to_hash_bucket_fast` finds a bucket."""

from __future__ import annotations

_MASK = 2**64 - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def fingerprint64(text: bytes) -> int:
    """The fingerprint of bytes (google/farmhash, `Fingerprint64`)."""
    size = len(text)
    if size > 64:
        return _of_long(text)
    if size > 32:
        return _of_33_to_64(text)
    if size > 16:
        mul = (_K2 + 2 * size) & _MASK
        a, b = _word(text, 0) * _K1 & _MASK, _word(text, 8)
        c, d = _word(text, size - 8) * mul & _MASK, _word(text, size - 16) * _K2
        return _mixed(_turned(a + b, 43) + _turned(c, 30) + d, a + _turned(b + _K2, 18) + c, mul)
    return _of_few(text)


def _of_few(text: bytes) -> int:
    """The fingerprint of at most 16 bytes."""
    size = len(text)
    mul = (_K2 + 2 * size) & _MASK
    if size >= 8:
        a, b = _word(text, 0) + _K2 & _MASK, _word(text, size - 8)
        return _mixed(_turned(b, 37) * mul + a, (_turned(a, 25) + b) * mul, mul)
    if size >= 4:
        first, last = (int.from_bytes(each, "little") for each in (text[:4], text[-4:]))
        return _mixed(size + (first << 3), last, mul)
    if size:
        y, z = text[0] + (text[size >> 1] << 8), size + (text[-1] << 2)
        return _folded((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK
    return _K2


def _of_33_to_64(text: bytes) -> int:
    size = len(text)
    mul = (_K2 + 2 * size) & _MASK
    a, b = _word(text, 0) * _K2 & _MASK, _word(text, 8)
    c, d = _word(text, size - 8) * mul & _MASK, _word(text, size - 16) * _K2
    y = (_turned(a + b, 43) + _turned(c, 30) + d) & _MASK
    z = _mixed(y, a + _turned(b + _K2, 18) + c, mul)
    e, f = _word(text, 16) * mul & _MASK, _word(text, 24)
    g = (y + _word(text, size - 32)) * mul & _MASK
    h = (z + _word(text, size - 24)) * mul & _MASK
    return _mixed(_turned(e + f, 43) + _turned(g, 30) + h, e + _turned(f + a, 18) + g, mul)


def _of_long(text: bytes) -> int:
    """The fingerprint of more than 64 bytes, in blocks of 64; the last one may overlap."""
    seed = 81
    x, y = (seed * _K2 + _word(text, 0)) & _MASK, (seed * _K1 + 113) & _MASK
    z = _folded((y * _K2 + 113) & _MASK) * _K2 & _MASK
    v, w = (0, 0), (0, 0)

    def step(at: int, mul: int, weight: int) -> None:
        nonlocal x, y, z, v, w
        x = _turned(x + y + v[0] + _word(text, at + 8), 37) * mul & _MASK
        y = _turned(y + v[1] + _word(text, at + 48), 42) * mul & _MASK
        x ^= w[1] * weight & _MASK
        y = (y + v[0] * weight + _word(text, at + 40)) & _MASK
        z = _turned(z + w[0], 33) * mul & _MASK
        v = _weak(text, at, v[1] * mul, x + w[0])
        w = _weak(text, at + 32, z + w[1], y + _word(text, at + 16))
        x, z = z, x

    for at in range(0, (len(text) - 1) // 64 * 64, 64):
        step(at, _K1, 1)
    mul = (_K1 + ((z & 0xFF) << 1)) & _MASK
    w = (w[0] + (len(text) - 1 & 63)) & _MASK, w[1]
    v = (v[0] + w[0]) & _MASK, v[1]
    w = (w[0] + v[0]) & _MASK, w[1]
    step(len(text) - 64, mul, 9)
    return _mixed(_mixed(v[0], w[0], mul) + _folded(y) * _K0 + z, _mixed(v[1], w[1], mul) + x, mul)


def _word(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + 8], "little")


def _turned(value: int, bits: int) -> int:
    value &= _MASK
    return (value >> bits | value << (64 - bits)) & _MASK


def _folded(value: int) -> int:
    return value ^ value >> 47


def _mixed(u: int, v: int, mul: int) -> int:
    u, v = u & _MASK, v & _MASK
    a = _folded((u ^ v) * mul & _MASK)
    return _folded((v ^ a) * mul & _MASK) * mul & _MASK


def _weak(text: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(text, at + each) for each in (0, 8, 16, 24))
    a = (a + w) & _MASK
    b = _turned(b + a + z, 21)
    total = (a + x + y) & _MASK
    return (total + z) & _MASK, (b + _turned(total, 44) + a) & _MASK
