/* SPDX-License-Identifier: Apache-2.0
 *
 * The dynamic section and the tables it names, in the order in which each needs the one
 * before. Addresses are those of the file's own segments; entries are read in blocks.
 */
#include "core/elf.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/checked.h"

#define MAX_ENTRIES 4096 /* of the dynamic section */
#define BLOCK 64         /* entries read at once */
#define WINDOW 4096

/* Tags by which a loader finds things, as places in struct image. */
enum {
    STRTAB,
    STRSZ,
    SYMTAB,
    SYMENT,
    RELA,
    RELASZ,
    RELAENT,
    RELACOUNT,
    JMPREL,
    PLTRELSZ,
    PLTREL,
    RELR,
    RELRSZ,
    RELRENT,
    INIT,
    FINI,
    INIT_ARRAY,
    INIT_ARRAYSZ,
    FINI_ARRAY,
    FINI_ARRAYSZ,
    HASH,
    GNU_HASH,
    VERSYM,
    VERNEED,
    VERNEEDNUM,
    VERDEF,
    VERDEFNUM,
    SONAME,
    RPATH,
    RUNPATH,
    TEXTREL,
    FLAGS,
    TAGS
};
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

#if defined(__aarch64__)
enum { RELATIVE = R_AARCH64_RELATIVE, IRELATIVE = R_AARCH64_IRELATIVE };
#else
enum { RELATIVE = R_X86_64_RELATIVE, IRELATIVE = R_X86_64_IRELATIVE };
#endif

struct image {
    const struct elf_source *source;
    const Elf64_Phdr *segments;
    size_t n_segments;
    uint16_t n_sections;
    bool has[TAGS];
    uint64_t value[TAGS];
    uint64_t needed[MAX_ENTRIES / 8]; /* offsets of names in the string table */
    size_t n_needed;
    uint64_t n_symbols, n_versions;
    uint64_t listed; /* symbols, by the section headers */
    uint64_t slots;  /* of initialisers and finalisers that a relocation fills */
    uint64_t tls;    /* bytes of a thread's block */
    uint64_t end;    /* of the last loaded segment */
    unsigned char
        window[WINDOW]; /* of the file, from window_at: tables are read in order */
    uint64_t window_at;
    size_t window_size;
};

bool elf_read(const struct elf_source *s, uint64_t at, void *out, size_t n)
{
    if (at > s->size || n > s->size - at)
        return false;
    if (s->fd < 0) {
        if (n > 0)
            memcpy(out, s->bytes + at, n);
        return true;
    }
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(s->fd, (char *)out + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static int damaged(strata_error *err, const char *what)
{
    return error_set(err, STRATA_EMODULE, "damaged: its %s; install it again", what);
}

/* ---- addresses ------------------------------------------------------------------- */

/* The loaded segment that holds [at, at + n): in the file, or else in memory. */
static const Elf64_Phdr *segment_of(const struct image *m, uint64_t at, uint64_t n,
                                    bool in_file)
{
    for (size_t i = 0; i < m->n_segments; i++) {
        const Elf64_Phdr *p = &m->segments[i];
        uint64_t size = in_file ? p->p_filesz : p->p_memsz;
        if (p->p_type == PT_LOAD && at >= p->p_vaddr && at - p->p_vaddr <= size &&
            n <= size - (at - p->p_vaddr))
            return p;
    }
    return NULL;
}

static bool read_image(struct image *m, uint64_t at, void *out, size_t n)
{
    const Elf64_Phdr *p = segment_of(m, at, n, true);
    const uint64_t offset = p ? p->p_offset + (at - p->p_vaddr) : 0;
    if (!p || offset > m->source->size || n > m->source->size - offset)
        return false;
    if (offset < m->window_at || offset + n > m->window_at + m->window_size) {
        m->window_size = m->source->size - offset < WINDOW
                             ? (size_t)(m->source->size - offset)
                             : WINDOW;
        m->window_at = offset;
        if (!elf_read(m->source, offset, m->window, m->window_size)) {
            m->window_size = 0;
            return false;
        }
    }
    memcpy(out, m->window + (offset - m->window_at), n);
    return true;
}

static bool is_code(const struct image *m, uint64_t at)
{
    const Elf64_Phdr *p = segment_of(m, at, 1, true);
    return p && (p->p_flags & PF_X);
}

static bool inside(const struct image *m, int address, int size, uint64_t at)
{
    return m->has[address] && at >= m->value[address] &&
           at - m->value[address] < m->value[size];
}

/* What the loader maps: ascending, without overlap, as the file's pages lie. */
static int check_segments(struct image *m, strata_error *err)
{
    for (size_t i = 0; i < m->n_segments; i++) {
        const Elf64_Phdr *p = &m->segments[i];
        size_t last;
        bool aligned = (p->p_align & (p->p_align - 1)) == 0;
        if (p->p_type == PT_TLS && (p->p_filesz > p->p_memsz || !aligned))
            return damaged(err, "thread-local segment is malformed");
        if (p->p_type == PT_TLS)
            m->tls = p->p_memsz;
        if (p->p_type != PT_LOAD)
            continue;
        if (p->p_filesz > p->p_memsz || !aligned || p->p_vaddr < m->end ||
            !checked_size_add(p->p_vaddr, p->p_memsz, &last) || last > INT64_MAX ||
            (p->p_align > 1 && (p->p_vaddr - p->p_offset) % p->p_align != 0))
            return damaged(err, "loaded segments are malformed");
        m->end = last;
    }
    return STRATA_OK;
}

/* ---- section headers --------------------------------------------------------------- */

/* They are a file's last bytes: zero where the copy of one broke off. */
static int check_sections(struct image *m, const Elf64_Ehdr *h, strata_error *err)
{
    Elf64_Shdr s;
    if (h->e_shoff == 0 || h->e_shnum == 0)
        return STRATA_OK;
    if (h->e_shentsize != sizeof s || h->e_shstrndx >= h->e_shnum)
        return damaged(err, "section headers are malformed");
    for (uint16_t i = 1; i < h->e_shnum; i++) {
        if (!elf_read(m->source, h->e_shoff + i * sizeof s, &s, sizeof s))
            return damaged(err, "section headers lie outside the file");
        if (s.sh_type == SHT_NULL)
            return error_set(err, STRATA_EMODULE,
                             "incomplete: section header %u of %u is zero, as where a "
                             "copy broke off; install it again",
                             i, h->e_shnum);
        if (s.sh_type != SHT_NOBITS &&
            (s.sh_offset > m->source->size || s.sh_size > m->source->size - s.sh_offset))
            return damaged(err, "sections lie outside the file");
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
            return damaged(err, "dynamic section needs too many libraries");
        m->needed[m->n_needed++] = d->d_un.d_val;
        return STRATA_OK;
    }
    if (d->d_tag == DT_REL || d->d_tag == DT_RELSZ)
        return damaged(err, "dynamic section has relocations of another machine");
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
        return damaged(err, "dynamic section is missing");
    const Elf64_Phdr *load = segment_of(m, p->p_vaddr, p->p_filesz, true);
    if (!load || p->p_offset - load->p_offset != p->p_vaddr - load->p_vaddr ||
        p->p_vaddr % 8 != 0)
        return damaged(err, "dynamic section is not in a loaded segment");
    for (uint64_t i = 0; i < p->p_filesz / sizeof d && i < MAX_ENTRIES; i++) {
        if (!read_image(m, p->p_vaddr + i * sizeof d, &d, sizeof d))
            return damaged(err, "dynamic section is not in the file");
        if (d.d_tag == DT_NULL)
            return STRATA_OK;
        int status = take_entry(m, &d, err);
        if (status != STRATA_OK)
            return status;
    }
    return damaged(err, "dynamic section does not end");
}

static bool is_name(const struct image *m, uint64_t offset)
{
    return offset < m->value[STRSZ];
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
            (size > 0 && !segment_of(m, at, size, true)))
            return error_set(err, STRATA_EMODULE,
                             "damaged: its %s (%llu bytes at 0x%llx) are not in a loaded "
                             "segment; install it again",
                             t->name, (unsigned long long)size, (unsigned long long)at);
    }
    if (!m->has[STRTAB] || !m->has[SYMTAB] || !m->has[SYMENT] ||
        m->value[SYMENT] != sizeof(Elf64_Sym) || (!m->has[HASH] && !m->has[GNU_HASH]))
        return damaged(err, "dynamic section lacks symbols, their names or their hash");
    if (m->has[JMPREL] && m->value[PLTREL] != DT_RELA)
        return damaged(err, "relocations of calls are of another kind");
    if ((m->has[INIT] && !is_code(m, m->value[INIT])) ||
        (m->has[FINI] && !is_code(m, m->value[FINI])))
        return damaged(err, "initialiser is not code");
    return STRATA_OK;
}

static int check_names(struct image *m, strata_error *err)
{
    static const int names[] = {SONAME, RPATH, RUNPATH};
    char last;
    if (m->value[STRSZ] == 0 ||
        !read_image(m, m->value[STRTAB] + m->value[STRSZ] - 1, &last, 1) || last != '\0')
        return damaged(err, "string table does not end");
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (m->has[names[i]] && !is_name(m, m->value[names[i]]))
            return damaged(err, "names lie outside the string table");
    for (size_t i = 0; i < m->n_needed; i++)
        if (!is_name(m, m->needed[i]))
            return damaged(err, "libraries' names lie outside the string table");
    return STRATA_OK;
}

/* ---- hash tables --------------------------------------------------------------------
 */

static bool read_word(struct image *m, uint64_t base, uint64_t index, uint32_t *out)
{
    return read_image(m, base + index * sizeof *out, out, sizeof *out);
}

/* The last chain of the GNU hash ends the symbols, and so every chain before it. */
static bool count_by_gnu_hash(struct image *m)
{
    struct {
        uint32_t buckets, first, bloom, shift;
    } h;
    const uint64_t base = m->value[GNU_HASH];
    uint32_t at, last = 0;
    if (base % 8 != 0 || !read_image(m, base, &h, sizeof h) || h.buckets == 0 ||
        h.bloom == 0 || (h.bloom & (h.bloom - 1)) != 0)
        return false;
    const uint64_t buckets = base + sizeof h + h.bloom * UINT64_C(8);
    const uint64_t chains = buckets + h.buckets * UINT64_C(4);
    if (!segment_of(m, base, chains - base, true))
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
        buckets == 0 || !segment_of(m, base, (UINT64_C(2) + buckets + chains) * 4, true))
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

/* ---- versions -----------------------------------------------------------------------
 */

static bool same_name(struct image *m, uint64_t a, uint64_t b)
{
    char x, y;
    for (;; a++, b++) {
        if (!is_name(m, a) || !is_name(m, b) ||
            !read_image(m, m->value[STRTAB] + a, &x, 1) ||
            !read_image(m, m->value[STRTAB] + b, &y, 1) || x != y)
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
        if (!read_image(m, at, &v, sizeof v) || v.vn_version != 1 ||
            !is_needed(m, v.vn_file) || v.vn_cnt == 0)
            return false;
        uint64_t aux = at + v.vn_aux;
        for (uint64_t k = 0; k < v.vn_cnt; k++) {
            if (!read_image(m, aux, &a, sizeof a) || !is_name(m, a.vna_name))
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
        if (!read_image(m, at, &v, sizeof v) || v.vd_version != 1 || v.vd_cnt == 0 ||
            !read_image(m, at + v.vd_aux, &a, sizeof a) || !is_name(m, a.vda_name))
            return false;
        count_version(m, v.vd_ndx);
        if (!step(&at, v.vd_next, i, m->value[VERDEFNUM]))
            return false;
    }
    return true;
}

static int check_versions(struct image *m, strata_error *err)
{
    uint16_t block[BLOCK];
    bool any = m->has[VERNEED] || m->has[VERDEF];
    m->n_versions = 2; /* local and global */
    if (any != m->has[VERSYM] || m->has[VERNEED] != m->has[VERNEEDNUM] ||
        m->has[VERDEF] != m->has[VERDEFNUM] ||
        (m->has[VERNEED] && !check_needed_versions(m)) ||
        (m->has[VERDEF] && !check_defined_versions(m)))
        return damaged(err, "symbol versions are malformed");
    for (uint64_t at = 0, n; m->has[VERSYM] && at < m->n_symbols; at += n) {
        n = m->n_symbols - at < BLOCK ? m->n_symbols - at : BLOCK;
        if (!read_image(m, m->value[VERSYM] + at * sizeof block[0], block,
                        n * sizeof block[0]))
            return damaged(err, "symbol versions are not in a loaded segment");
        for (uint64_t i = 0; i < n; i++)
            if ((block[i] & 0x7fffu) >= m->n_versions)
                return damaged(err, "symbols have versions that do not exist");
    }
    return STRATA_OK;
}

/* ---- symbols ------------------------------------------------------------------------
 */

static bool symbol_fits(const struct image *m, const Elf64_Sym *s)
{
    const int type = ELF64_ST_TYPE(s->st_info);
    if (!is_name(m, s->st_name))
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
        return is_code(m, s->st_value);
    return segment_of(m, s->st_value, 0, false) != NULL;
}

static int check_symbols(struct image *m, strata_error *err)
{
    Elf64_Sym block[BLOCK];
    for (uint64_t at = 0, n; at < m->n_symbols; at += n) {
        n = m->n_symbols - at < BLOCK ? m->n_symbols - at : BLOCK;
        if (!read_image(m, m->value[SYMTAB] + at * sizeof block[0], block,
                        n * sizeof block[0]))
            return damaged(err, "symbol table is not in a loaded segment");
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
    const Elf64_Phdr *p = segment_of(m, r->r_offset, 8, false);
    if (!p || !((p->p_flags & PF_W) || text) || ELF64_R_SYM(r->r_info) >= m->n_symbols)
        return false;
    const bool slot = inside(m, INIT_ARRAY, INIT_ARRAYSZ, r->r_offset) ||
                      inside(m, FINI_ARRAY, FINI_ARRAYSZ, r->r_offset);
    m->slots += slot && r->r_offset % 8 == 0;
    if (type == RELATIVE && (uint64_t)r->r_addend > m->end)
        return false;
    return !(type == IRELATIVE || (slot && type == RELATIVE)) ||
           is_code(m, (uint64_t)r->r_addend);
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
        return damaged(err, "relocations are fewer than it says");
    for (uint64_t at = 0, n; at < count; at += n) {
        n = count - at < BLOCK ? count - at : BLOCK;
        if (!read_image(m, m->value[address] + at * sizeof block[0], block,
                        n * sizeof block[0]))
            return damaged(err, "relocations are not in a loaded segment");
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

static int check_all_relocations(struct image *m, strata_error *err)
{
    int status = STRATA_OK;
    if (m->has[RELA])
        status = check_relocations(m, RELA, RELASZ, m->value[RELACOUNT], err);
    if (status == STRATA_OK && m->has[JMPREL])
        status = check_relocations(m, JMPREL, PLTRELSZ, 0, err);
    if (status == STRATA_OK && !m->has[RELR] &&
        m->slots != (m->value[INIT_ARRAYSZ] + m->value[FINI_ARRAYSZ]) / 8)
        return damaged(err, "initialisers have no address");
    return status;
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
        status = damaged(err, "symbols' hash is malformed");
    if (status == STRATA_OK)
        status = check_versions(&m, err);
    if (status == STRATA_OK)
        status = check_symbols(&m, err);
    return status == STRATA_OK ? check_all_relocations(&m, err) : status;
}
