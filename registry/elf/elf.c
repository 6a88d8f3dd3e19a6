/* SPDX-License-Identifier: Apache-2.0
 *
 * The dynamic section and the tables it names, in the order in which each needs the one
 * before. Addresses are those of the file's own segments; entries are read in blocks.
 */
#include "registry/elf/image.h"

#include <string.h>

#include "core/checked.h"

static const int64_t tags[TAGS] = {
    [STRTAB] = DT_STRTAB,
    [STRSZ] = DT_STRSZ,
    [SYMTAB] = DT_SYMTAB,
    [SYMENT] = DT_SYMENT,
    [RELA] = DT_RELA,
    [RELASZ] = DT_RELASZ,
    [RELAENT] = DT_RELAENT,
    [RELACOUNT] = DT_RELACOUNT,
    [JMPREL] = DT_JMPREL,
    [PLTRELSZ] = DT_PLTRELSZ,
    [PLTREL] = DT_PLTREL,
    [RELR] = 36, /* DT_RELR, as of glibc 2.36 */
    [RELRSZ] = 35,
    [RELRENT] = 37,
    [INIT] = DT_INIT,
    [FINI] = DT_FINI,
    [INIT_ARRAY] = DT_INIT_ARRAY,
    [INIT_ARRAYSZ] = DT_INIT_ARRAYSZ,
    [FINI_ARRAY] = DT_FINI_ARRAY,
    [FINI_ARRAYSZ] = DT_FINI_ARRAYSZ,
    [HASH] = DT_HASH,
    [GNU_HASH] = DT_GNU_HASH,
    [VERSYM] = DT_VERSYM,
    [VERNEED] = DT_VERNEED,
    [VERNEEDNUM] = DT_VERNEEDNUM,
    [VERDEF] = DT_VERDEF,
    [VERDEFNUM] = DT_VERDEFNUM,
    [SONAME] = DT_SONAME,
    [RPATH] = DT_RPATH,
    [RUNPATH] = DT_RUNPATH,
    [TEXTREL] = DT_TEXTREL,
    [FLAGS] = DT_FLAGS,
};

/* Tables whose size stands beside their address; both tags are there, or none. */
static const struct table {
    int address, size, entry; /* tags; entry -1: it is not stated */
    uint64_t entry_size;
    const char *name;
} tables[] = {
    {STRTAB, STRSZ, -1, 1, "string table"},
    {RELA, RELASZ, RELAENT, sizeof(Elf64_Rela), "relocations"},
    {JMPREL, PLTRELSZ, -1, sizeof(Elf64_Rela), "relocations of calls"},
    {RELR, RELRSZ, RELRENT, 8, "relative relocations"},
    {INIT_ARRAY, INIT_ARRAYSZ, -1, 8, "initialisers"},
    {FINI_ARRAY, FINI_ARRAYSZ, -1, 8, "finalisers"},
};

/* What the loader maps: ascending, without overlap, as the file's pages lie. */
static int check_segments(struct image *m, strata_error *err)
{
    for (size_t i = 0; i < m->n_segments; i++) {
        const Elf64_Phdr *p = &m->segments[i];
        size_t last;
        bool aligned = (p->p_align & (p->p_align - 1)) == 0;
        if (p->p_type == PT_TLS && (p->p_filesz > p->p_memsz || !aligned))
            return elf_damaged(err, "thread-local segment is malformed");
        if (p->p_type == PT_TLS)
            m->tls = p->p_memsz;
        if (p->p_type != PT_LOAD)
            continue;
        if (p->p_filesz > p->p_memsz || !aligned || p->p_vaddr < m->end ||
            !checked_size_add(p->p_vaddr, p->p_memsz, &last) || last > INT64_MAX ||
            (p->p_align > 1 && (p->p_vaddr - p->p_offset) % p->p_align != 0))
            return elf_damaged(err, "loaded segments are malformed");
        m->end = last;
    }
    return STRATA_OK;
}

/* ---- section headers --------------------------------------------------------------- */

/* Section headers are a file's last bytes: zero where a copy of it broke off. */
static int check_sections(struct image *m, const Elf64_Ehdr *h, strata_error *err)
{
    Elf64_Shdr s;
    if (h->e_shoff == 0 || h->e_shnum == 0)
        return STRATA_OK;
    if (h->e_shentsize != sizeof s || h->e_shstrndx >= h->e_shnum)
        return elf_damaged(err, "section headers are malformed");
    for (uint16_t i = 1; i < h->e_shnum; i++) {
        if (!elf_read(m->source, h->e_shoff + i * sizeof s, &s, sizeof s))
            return elf_damaged(err, "section headers lie outside the file");
        if (s.sh_type == SHT_NULL)
            return error_set(err, STRATA_EMODULE,
                             "incomplete: section header %u of %u is zero, as where a "
                             "copy broke off; install it again",
                             i, h->e_shnum);
        if (s.sh_type != SHT_NOBITS &&
            (s.sh_offset > m->source->size || s.sh_size > m->source->size - s.sh_offset))
            return elf_damaged(err, "sections lie outside the file");
        if (s.sh_type == SHT_DYNSYM)
            m->listed = s.sh_size / sizeof(Elf64_Sym);
    }
    return STRATA_OK;
}

/* ---- the dynamic section ----------------------------------------------------------- */

static int take_entry(struct image *m, const Elf64_Dyn *d, strata_error *err)
{
    if (d->d_tag == DT_NEEDED) {
        if (m->n_needed == ARRAY_LENGTH(m->needed))
            return elf_damaged(err, "dynamic section needs too many libraries");
        m->needed[m->n_needed++] = d->d_un.d_val;
        return STRATA_OK;
    }
    if (d->d_tag == DT_REL || d->d_tag == DT_RELSZ)
        return elf_damaged(err, "dynamic section has relocations of another machine");
    for (int i = 0; i < TAGS; i++) {
        if (tags[i] != d->d_tag)
            continue;
        if (m->has[i])
            return error_set(err, STRATA_EMODULE,
                             "damaged: its dynamic section has tag %lld twice; install "
                             "it again",
                             (long long)d->d_tag);
        m->has[i] = true;
        m->value[i] = d->d_un.d_val;
    }
    return STRATA_OK;
}

static int read_dynamic(struct image *m, strata_error *err)
{
    const Elf64_Phdr *p = NULL;
    Elf64_Dyn d;
    for (size_t i = 0; i < m->n_segments; i++)
        if (m->segments[i].p_type == PT_DYNAMIC)
            p = &m->segments[i];
    if (!p)
        return elf_damaged(err, "dynamic section is missing");
    const Elf64_Phdr *load = elf_segment(m, p->p_vaddr, p->p_filesz, true);
    if (!load || p->p_offset - load->p_offset != p->p_vaddr - load->p_vaddr ||
        p->p_vaddr % 8 != 0)
        return elf_damaged(err, "dynamic section is not in a loaded segment");
    for (uint64_t i = 0; i < p->p_filesz / sizeof d && i < MAX_ENTRIES; i++) {
        if (!elf_read_image(m, p->p_vaddr + i * sizeof d, &d, sizeof d))
            return elf_damaged(err, "dynamic section is not in the file");
        if (d.d_tag == DT_NULL)
            return STRATA_OK;
        int status = take_entry(m, &d, err);
        if (status != STRATA_OK)
            return status;
    }
    return elf_damaged(err, "dynamic section does not end");
}

static int check_tables(const struct image *m, strata_error *err)
{
    for (size_t i = 0; i < ARRAY_LENGTH(tables); i++) {
        const struct table *t = &tables[i];
        uint64_t at = m->value[t->address], size = m->value[t->size];
        bool stated = t->entry < 0 || !m->has[t->address] ||
                      (m->has[t->entry] && m->value[t->entry] == t->entry_size);
        if (m->has[t->address] != m->has[t->size] || !stated ||
            size % t->entry_size != 0 || (size > 0 && t->entry_size > 1 && at % 8 != 0) ||
            (size > 0 && !elf_segment(m, at, size, true)))
            return error_set(err, STRATA_EMODULE,
                             "damaged: its %s (%llu bytes at 0x%llx) are not in a loaded "
                             "segment; install it again",
                             t->name, (unsigned long long)size, (unsigned long long)at);
    }
    if (!m->has[STRTAB] || !m->has[SYMTAB] || !m->has[SYMENT] ||
        m->value[SYMENT] != sizeof(Elf64_Sym) || (!m->has[HASH] && !m->has[GNU_HASH]))
        return elf_damaged(err,
                           "dynamic section lacks symbols, their names or their hash");
    if (m->has[JMPREL] && m->value[PLTREL] != DT_RELA)
        return elf_damaged(err, "relocations of calls are of another kind");
    if ((m->has[INIT] && !elf_is_code(m, m->value[INIT])) ||
        (m->has[FINI] && !elf_is_code(m, m->value[FINI])))
        return elf_damaged(err, "initialiser is not code");
    return STRATA_OK;
}

static int check_names(struct image *m, strata_error *err)
{
    static const int names[] = {SONAME, RPATH, RUNPATH};
    char last;
    if (m->value[STRSZ] == 0 ||
        !elf_read_image(m, m->value[STRTAB] + m->value[STRSZ] - 1, &last, 1) ||
        last != '\0')
        return elf_damaged(err, "string table does not end");
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (m->has[names[i]] && !elf_is_name(m, m->value[names[i]]))
            return elf_damaged(err, "names lie outside the string table");
    for (size_t i = 0; i < m->n_needed; i++)
        if (!elf_is_name(m, m->needed[i]))
            return elf_damaged(err, "libraries' names lie outside the string table");
    return STRATA_OK;
}

/* ---- hash tables --------------------------------------------------------------------
 */

static bool read_word(struct image *m, uint64_t base, uint64_t index, uint32_t *out)
{
    return elf_read_image(m, base + index * sizeof *out, out, sizeof *out);
}

/* The last chain of the GNU hash ends the symbols, and so every chain before it. */
static bool count_by_gnu_hash(struct image *m)
{
    struct {
        uint32_t buckets, first, bloom, shift;
    } h;
    const uint64_t base = m->value[GNU_HASH];
    uint32_t at, last = 0;
    if (base % 8 != 0 || !elf_read_image(m, base, &h, sizeof h) || h.buckets == 0 ||
        h.bloom == 0 || (h.bloom & (h.bloom - 1)) != 0)
        return false;
    const uint64_t buckets = base + sizeof h + h.bloom * UINT64_C(8);
    const uint64_t chains = buckets + h.buckets * UINT64_C(4);
    if (!elf_segment(m, base, chains - base, true))
        return false;
    for (uint32_t i = 0; i < h.buckets; i++) {
        if (!read_word(m, buckets, i, &at) || (at != 0 && at < h.first))
            return false;
        last = at > last ? at : last;
    }
    /* One that exports nothing does not say how many symbols it uses. */
    m->n_symbols = last == 0 && m->listed > h.first ? m->listed : h.first;
    if (last == 0 && !m->listed && m->value[STRTAB] > m->value[SYMTAB])
        m->n_symbols = (m->value[STRTAB] - m->value[SYMTAB]) / sizeof(Elf64_Sym);
    for (uint32_t end = 0; last != 0 && !(end & 1); m->n_symbols = ++last)
        if (!read_word(m, chains, last - h.first, &end))
            return false;
    return true;
}

/* The chains of all buckets together have each symbol once, or they run in a circle. */
static bool count_by_hash(struct image *m)
{
    const uint64_t base = m->value[HASH];
    uint32_t buckets, chains, at, steps = 0;
    if (!read_word(m, base, 0, &buckets) || !read_word(m, base, 1, &chains) ||
        buckets == 0 || !elf_segment(m, base, (UINT64_C(2) + buckets + chains) * 4, true))
        return false;
    for (uint32_t i = 0; i < buckets; i++) {
        if (!read_word(m, base, UINT64_C(2) + i, &at))
            return false;
        while (at != 0)
            if (at >= chains || ++steps > chains ||
                !read_word(m, base, UINT64_C(2) + buckets + at, &at))
                return false;
    }
    m->n_symbols = chains;
    return true;
}

int elf_check(const struct elf_source *s, const Elf64_Ehdr *header,
              const Elf64_Phdr *segments, size_t n, strata_error *err)
{
    struct image m = {.source = s,
                      .segments = segments,
                      .n_segments = n,
                      .n_sections = header->e_shoff ? header->e_shnum : 0};
    int status = check_sections(&m, header, err);
    if (status == STRATA_OK)
        status = check_segments(&m, err);
    if (status == STRATA_OK)
        status = read_dynamic(&m, err);
    if (status == STRATA_OK)
        status = check_tables(&m, err);
    if (status == STRATA_OK)
        status = check_names(&m, err);
    if (status == STRATA_OK &&
        !(m.has[GNU_HASH] ? count_by_gnu_hash(&m) : count_by_hash(&m)))
        status = elf_damaged(err, "symbols' hash is malformed");
    if (status == STRATA_OK)
        status = elf_check_versions(&m, err);
    if (status == STRATA_OK)
        status = elf_check_symbols(&m, err);
    return status == STRATA_OK ? elf_check_relocations(&m, err) : status;
}
