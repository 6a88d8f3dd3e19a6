/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tables of a shared object say: versions, symbols, relocations.
 */
#include "registry/elf/image.h"

#include <string.h>

#include "core/checked.h"

#if defined(__aarch64__)
enum { RELATIVE = R_AARCH64_RELATIVE, IRELATIVE = R_AARCH64_IRELATIVE };
#else
enum { RELATIVE = R_X86_64_RELATIVE, IRELATIVE = R_X86_64_IRELATIVE };
#endif

/* ---- versions -----------------------------------------------------------------------
 */

static bool same_name(struct image *m, uint64_t a, uint64_t b)
{
    char x, y;
    for (;; a++, b++) {
        if (!elf_is_name(m, a) || !elf_is_name(m, b) ||
            !elf_read_image(m, m->value[STRTAB] + a, &x, 1) ||
            !elf_read_image(m, m->value[STRTAB] + b, &y, 1) || x != y)
            return false;
        if (x == '\0')
            return true;
    }
}

/* The loader takes it for granted that the file is one of those needed. */
static bool is_needed(struct image *m, uint64_t name)
{
    for (size_t i = 0; i < m->n_needed; i++)
        if (same_name(m, m->needed[i], name))
            return true;
    return false;
}

static void count_version(struct image *m, uint16_t index)
{
    if ((index & 0x7fffu) >= m->n_versions)
        m->n_versions = (index & 0x7fffu) + 1u;
}

/* Step to the next entry: 0 ends a chain, and it ends where it was said to. */
static bool step(uint64_t *at, uint32_t next, uint64_t i, uint64_t n)
{
    *at += next;
    return (next == 0) == (i + 1 == n);
}

static bool check_needed_versions(struct image *m)
{
    uint64_t at = m->value[VERNEED];
    Elf64_Verneed v;
    Elf64_Vernaux a;
    for (uint64_t i = 0; i < m->value[VERNEEDNUM]; i++) {
        if (!elf_read_image(m, at, &v, sizeof v) || v.vn_version != 1 ||
            !is_needed(m, v.vn_file) || v.vn_cnt == 0)
            return false;
        uint64_t aux = at + v.vn_aux;
        for (uint64_t k = 0; k < v.vn_cnt; k++) {
            if (!elf_read_image(m, aux, &a, sizeof a) || !elf_is_name(m, a.vna_name))
                return false;
            count_version(m, a.vna_other);
            if (!step(&aux, a.vna_next, k, v.vn_cnt))
                return false;
        }
        if (!step(&at, v.vn_next, i, m->value[VERNEEDNUM]))
            return false;
    }
    return true;
}

static bool check_defined_versions(struct image *m)
{
    uint64_t at = m->value[VERDEF];
    Elf64_Verdef v;
    Elf64_Verdaux a;
    for (uint64_t i = 0; i < m->value[VERDEFNUM]; i++) {
        if (!elf_read_image(m, at, &v, sizeof v) || v.vd_version != 1 || v.vd_cnt == 0 ||
            !elf_read_image(m, at + v.vd_aux, &a, sizeof a) ||
            !elf_is_name(m, a.vda_name))
            return false;
        count_version(m, v.vd_ndx);
        if (!step(&at, v.vd_next, i, m->value[VERDEFNUM]))
            return false;
    }
    return true;
}

int elf_check_versions(struct image *m, strata_error *err)
{
    uint16_t block[BLOCK];
    bool any = m->has[VERNEED] || m->has[VERDEF];
    m->n_versions = 2; /* local and global */
    if (any != m->has[VERSYM] || m->has[VERNEED] != m->has[VERNEEDNUM] ||
        m->has[VERDEF] != m->has[VERDEFNUM] ||
        (m->has[VERNEED] && !check_needed_versions(m)) ||
        (m->has[VERDEF] && !check_defined_versions(m)))
        return elf_damaged(err, "symbol versions are malformed");
    for (uint64_t at = 0, n; m->has[VERSYM] && at < m->n_symbols; at += n) {
        n = m->n_symbols - at < BLOCK ? m->n_symbols - at : BLOCK;
        if (!elf_read_image(m, m->value[VERSYM] + at * sizeof block[0], block,
                            n * sizeof block[0]))
            return elf_damaged(err, "symbol versions are not in a loaded segment");
        for (uint64_t i = 0; i < n; i++)
            if ((block[i] & 0x7fffu) >= m->n_versions)
                return elf_damaged(err, "symbols have versions that do not exist");
    }
    return STRATA_OK;
}

/* ---- symbols ------------------------------------------------------------------------
 */

static bool symbol_fits(const struct image *m, const Elf64_Sym *s)
{
    const int type = ELF64_ST_TYPE(s->st_info);
    if (!elf_is_name(m, s->st_name))
        return false;
    if (s->st_shndx == SHN_UNDEF) /* a local one would be at 0 */
        return s->st_name == 0 || ELF64_ST_BIND(s->st_info) != STB_LOCAL;
    if (s->st_shndx == SHN_ABS)
        return true;
    if (m->n_sections > 0 && s->st_shndx >= m->n_sections)
        return false;
    if (type == STT_TLS)
        return s->st_value <= m->tls;
    if (type == STT_FUNC || type == STT_GNU_IFUNC)
        return elf_is_code(m, s->st_value);
    return elf_segment(m, s->st_value, 0, false) != NULL;
}

int elf_check_symbols(struct image *m, strata_error *err)
{
    Elf64_Sym block[BLOCK];
    for (uint64_t at = 0, n; at < m->n_symbols; at += n) {
        n = m->n_symbols - at < BLOCK ? m->n_symbols - at : BLOCK;
        if (!elf_read_image(m, m->value[SYMTAB] + at * sizeof block[0], block,
                            n * sizeof block[0]))
            return elf_damaged(err, "symbol table is not in a loaded segment");
        for (uint64_t i = 0; i < n; i++)
            if (!symbol_fits(m, &block[i]))
                return error_set(err, STRATA_EMODULE,
                                 "damaged: symbol %llu leads out of the file; install it "
                                 "again",
                                 (unsigned long long)(at + i));
    }
    return STRATA_OK;
}

/* ---- relocations --------------------------------------------------------------------
 */

static bool relocation_fits(struct image *m, const Elf64_Rela *r, bool text)
{
    const uint32_t type = ELF64_R_TYPE(r->r_info);
    if (type == 0)
        return true;
    const Elf64_Phdr *p = elf_segment(m, r->r_offset, 8, false);
    if (!p || !((p->p_flags & PF_W) || text) || ELF64_R_SYM(r->r_info) >= m->n_symbols)
        return false;
    const bool slot = elf_inside(m, INIT_ARRAY, INIT_ARRAYSZ, r->r_offset) ||
                      elf_inside(m, FINI_ARRAY, FINI_ARRAYSZ, r->r_offset);
    m->slots += slot && r->r_offset % 8 == 0;
    if (type == RELATIVE && (uint64_t)r->r_addend > m->end)
        return false;
    return !(type == IRELATIVE || (slot && type == RELATIVE)) ||
           elf_is_code(m, (uint64_t)r->r_addend);
}

/* Whether two addresses are written over each other; neighbours tell, as tables are
 * sorted. Entries without a type fill gaps. */
static bool overlap(const Elf64_Rela *r, uint64_t before)
{
    if (ELF64_R_TYPE(r->r_info) == 0)
        return false;
    return r->r_offset - before < 8 || before - r->r_offset < 8;
}

/* The loader does not look at the type of the first `relative` ones. */
static int check_relocations(struct image *m, int address, int size, uint64_t relative,
                             strata_error *err)
{
    const uint64_t count = m->value[size] / sizeof(Elf64_Rela);
    const bool text = m->has[TEXTREL] || (m->value[FLAGS] & DF_TEXTREL);
    Elf64_Rela block[BLOCK];
    uint64_t before = UINT64_MAX / 2;
    if (relative > count)
        return elf_damaged(err, "relocations are fewer than it says");
    for (uint64_t at = 0, n; at < count; at += n) {
        n = count - at < BLOCK ? count - at : BLOCK;
        if (!elf_read_image(m, m->value[address] + at * sizeof block[0], block,
                            n * sizeof block[0]))
            return elf_damaged(err, "relocations are not in a loaded segment");
        for (uint64_t i = 0; i < n; before = block[i++].r_offset)
            if (!relocation_fits(m, &block[i], text) ||
                (!text && overlap(&block[i], before)) ||
                (at + i < relative && ELF64_R_TYPE(block[i].r_info) != RELATIVE))
                return error_set(err, STRATA_EMODULE,
                                 "damaged: relocation %llu leads out of the file; "
                                 "install it again",
                                 (unsigned long long)(at + i));
    }
    return STRATA_OK;
}

int elf_check_relocations(struct image *m, strata_error *err)
{
    int status = STRATA_OK;
    if (m->has[RELA])
        status = check_relocations(m, RELA, RELASZ, m->value[RELACOUNT], err);
    if (status == STRATA_OK && m->has[JMPREL])
        status = check_relocations(m, JMPREL, PLTRELSZ, 0, err);
    if (status == STRATA_OK && !m->has[RELR] &&
        m->slots != (m->value[INIT_ARRAYSZ] + m->value[FINI_ARRAYSZ]) / 8)
        return elf_damaged(err, "initialisers have no address");
    return status;
}
