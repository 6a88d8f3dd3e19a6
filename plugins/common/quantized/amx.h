/* SPDX-License-Identifier: Apache-2.0
 *
 * AMX for bytes, which a process asks its system for: whether it is there, and tiles of
 * 16 rows of 64 bytes.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_AMX_H
#define PLUGINS_COMMON_QUANTIZED_AMX_H

#if defined __linux__ && defined __x86_64__ && (__GNUC__ >= 11 || __clang_major__ >= 12)
#define AMX_COMPILES 1
#include <cpuid.h>
#include <immintrin.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AMX_TARGET __attribute__((target("amx-tile,amx-int8,avx512f")))

enum { AMX_REQUEST = 0x1023, AMX_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XTILEDATA */

/* By CPUID: not every compiler that has the tiles knows them by name. */
static inline int amx_is_built_in(void)
{
    const unsigned int leaf = 7, tile = 1u << 24, int8 = 1u << 25;
    unsigned int eax, ebx, ecx, edx = 0;
    return __get_cpuid_count(leaf, 0, &eax, &ebx, &ecx, &edx) && (edx & tile) &&
           (edx & int8);
}

/* The system keeps tiles only for processes that asked: again comes to the same. */
static inline int amx_is_granted(void)
{
    return amx_is_built_in() && syscall(SYS_arch_prctl, AMX_REQUEST, AMX_DATA) == 0;
}

/* What ldtilecfg reads. */
struct amx_tiles {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Around a thread's products. */
AMX_TARGET static inline void amx_open(void)
{
    struct amx_tiles all = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        all.row_bytes[i] = 64;
        all.rows[i] = 16;
    }
    __asm__ volatile("" : : "r"(&all) : "memory"); /* GCC 12: it reads 8 bytes */
    _tile_loadconfig(&all);
}

AMX_TARGET static inline void amx_close(void)
{
    _tile_release();
}
#endif

#endif /* PLUGINS_COMMON_QUANTIZED_AMX_H */
