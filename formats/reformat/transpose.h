/* SPDX-License-Identifier: Apache-2.0
 *
 * pack and unpack out of an in-register transposition of 8 x 8 elements; included once
 * for each width, hence without a guard. The includer defines NAME(base), TYPE, VECTOR,
 * LOAD(p), STORE(p, v), TRANSPOSE(v), TARGET and UNROLLED; with NARROW also
 * NAME(pack_narrow) and NAME(unpack_narrow), which do the work of pack_lanes and
 * unpack_lanes for at most 4 lanes; with DOUBLE also WIDE, LOAD_WIDE(p), LOAD_TWO(p, q),
 * STORE_WIDE(p, v), LOW(v), HIGH(v) and TRANSPOSE_WIDE(v), two transpositions side by
 * side. Edges repeat a part of the block before them.
 */

static inline size_t NAME(edge)(size_t at, size_t n, size_t block)
{
    return at + block > n && n >= block ? n - block : at;
}

TARGET static void NAME(pack_lanes)(TYPE *dst, size_t lanes, const TYPE *src,
                                    size_t pitch, size_t valid, size_t n, size_t ahead)
{
    static const TYPE zeros[16];
    const TYPE *row[8];
    size_t step[8];
    for (size_t r = 0; r < 8; r++) {
        row[r] = r < valid ? src + r * pitch : zeros;
        step[r] = r < valid;
    }
#ifdef DOUBLE
    for (size_t at = 0; n >= 16 && at < n; at += 16) {
        WIDE v[8];
        const size_t i = NAME(edge)(at, n, 16);
        if (ahead > 0 && at % (64 / sizeof(TYPE)) == 0) /* one line of memory */
            for (size_t r = 0; r < 8; r++)
                __builtin_prefetch(row[r] + (i + ahead) * step[r]);
        UNROLLED for (size_t r = 0; r < 8; r++) v[r] = LOAD_WIDE(row[r] + i * step[r]);
        TRANSPOSE_WIDE(v);
        UNROLLED for (size_t r = 0; r < 8; r++) STORE(dst + (i + r) * lanes, LOW(v[r]));
        UNROLLED for (size_t r = 0; r < 8; r++)
            STORE(dst + (i + 8 + r) * lanes, HIGH(v[r]));
    }
    if (n >= 16)
        return;
#endif
    for (size_t at = 0; at < n; at += 8) {
        VECTOR v[8];
        const size_t i = NAME(edge)(at, n, 8);
        if (ahead > 0 && at % (64 / sizeof(TYPE)) == 0) /* one line of memory */
            for (size_t r = 0; r < 8; r++)
                __builtin_prefetch(row[r] + (i + ahead) * step[r]);
        UNROLLED for (size_t r = 0; r < 8; r++) v[r] = LOAD(row[r] + i * step[r]);
        TRANSPOSE(v);
        /* In this order: with fewer than 8 lanes a store spills into later pixels. */
        UNROLLED for (size_t r = 0; r < 8; r++) STORE(dst + (i + r) * lanes, v[r]);
    }
}

TARGET void NAME(reformat_pack)(void *dst, size_t lanes, const void *src, size_t pitch,
                                size_t valid, size_t n, size_t ahead)
{
    const TYPE *s = src;
    TYPE *d = dst;
    if (n < 8) {
        PLAIN.pack[PLAIN_INDEX](dst, lanes, src, pitch, valid, n, ahead);
        return;
    }
#ifdef NARROW
    if (lanes <= 4) {
        NAME(pack_narrow)(d, lanes, s, pitch, valid, n);
        return;
    }
#endif
    for (size_t at = 0; at < lanes; at += 8) {
        const size_t l = NAME(edge)(at, lanes, 8);
        NAME(pack_lanes)
        (d + l, lanes, s + (l < valid ? l * pitch : 0), pitch, l < valid ? valid - l : 0,
         n, ahead);
    }
}

/* `keep` rows of each block go to dst. */
TARGET static void NAME(unpack_lanes)(TYPE *dst, size_t dst_pitch, const TYPE *src,
                                      size_t pitch, size_t keep, size_t n, size_t ahead)
{
#ifdef DOUBLE
    for (size_t at = 0; n >= 16 && at < n; at += 16) {
        WIDE v[8];
        const size_t i = NAME(edge)(at, n, 16);
        if (ahead > 0)
            for (size_t r = 0; r < 16; r++)
                __builtin_prefetch(src + (i + r + ahead) * pitch);
        UNROLLED for (size_t r = 0; r < 8; r++) v[r] =
            LOAD_TWO(src + (i + r) * pitch, src + (i + 8 + r) * pitch);
        TRANSPOSE_WIDE(v);
        UNROLLED for (size_t r = 0; r < 8; r++) if (r < keep)
            STORE_WIDE(dst + r * dst_pitch + i, v[r]);
    }
    if (n >= 16)
        return;
#endif
    for (size_t at = 0; at < n; at += 8) {
        VECTOR v[8];
        const size_t i = NAME(edge)(at, n, 8);
        if (ahead > 0)
            for (size_t r = 0; r < 8; r++)
                __builtin_prefetch(src + (i + r + ahead) * pitch);
        UNROLLED for (size_t r = 0; r < 8; r++) v[r] = LOAD(src + (i + r) * pitch);
        TRANSPOSE(v);
        for (size_t r = 0; r < keep; r++)
            STORE(dst + r * dst_pitch + i, v[r]);
    }
}

TARGET void NAME(reformat_unpack)(void *dst, size_t dst_pitch, const void *src,
                                  size_t pitch, size_t lanes, size_t n, size_t ahead)
{
    const TYPE *s = src;
    TYPE *d = dst;
    size_t done = 0; /* pixels */
    if (n >= 8 && lanes >= 8) {
        for (size_t at = 0; at < lanes; at += 8) {
            const size_t l = NAME(edge)(at, lanes, 8);
            NAME(unpack_lanes)(d + l * dst_pitch, dst_pitch, s + l, pitch, 8, n, ahead);
        }
        return;
    }
    /* A load of `wide` lanes must end before the last pixel does. */
#ifdef NARROW
    const size_t wide = lanes <= 4 ? 4 : 8;
#else
    const size_t wide = 8;
#endif
    const size_t spill = pitch > 0 ? (wide - lanes + pitch - 1) / pitch : n;
    if (lanes < 8 && n >= spill + 8) {
        done = n - spill;
#ifdef NARROW
        if (wide == 4)
            NAME(unpack_narrow)(d, dst_pitch, s, pitch, lanes, done);
        else
#endif
            NAME(unpack_lanes)(d, dst_pitch, s, pitch, lanes, done, ahead);
    }
    PLAIN.unpack[PLAIN_INDEX](d + done, dst_pitch, s + done * pitch, pitch, lanes,
                              n - done, 0);
}
