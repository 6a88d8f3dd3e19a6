/* SPDX-License-Identifier: Apache-2.0
 *
 * A few reads of the file's headers, each checked against the file's size. Nothing is
 * mapped: a file cut short after the check would kill the process with SIGBUS.
 */
#include "registry/note.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/checked.h"
#include "registry/elf/elf.h"
#include "registry/name.h"

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#else
#error "the plugin loader knows x86-64 and aarch64"
#endif

#define MAX_SEGMENTS 128
#define MAX_NOTES 256        /* per segment */
#define MAX_DYNAMIC 4096     /* entries */
#define NOTE_HEADER_BYTES 20 /* of strata_note: the ELF header and the name */

static const struct {
    uint16_t machine;
    const char *name;
} machines[] = {
    {EM_X86_64, "x86-64"}, {EM_AARCH64, "aarch64"}, {EM_386, "i386"},
    {EM_ARM, "arm"},       {EM_PPC64, "ppc64"},     {EM_RISCV, "riscv"},
    {EM_S390, "s390x"},    {EM_MIPS, "mips"},       {258, "loongarch"},
};

static const char *const sanitizers[] = {
    [STRATA_SANITIZER_NONE] = "no sanitizer",
    [STRATA_SANITIZER_ADDRESS] = "ASan",
    [STRATA_SANITIZER_THREAD] = "TSan",
};

#define refuse(err, ...) error_set(err, STRATA_EMODULE, __VA_ARGS__)

static int unreadable(strata_error *err)
{
    return refuse(err, "truncated: it became shorter while it was read");
}

static int check_machine(uint16_t machine, strata_error *err)
{
    const char *built = NULL, *host = NULL;
    if (machine == HOST_MACHINE)
        return STRATA_OK;
    for (size_t i = 0; i < ARRAY_LENGTH(machines); i++) {
        if (machines[i].machine == machine)
            built = machines[i].name;
        if (machines[i].machine == HOST_MACHINE)
            host = machines[i].name;
    }
    if (!built)
        return refuse(err, "built for machine %u, this host is %s", machine, host);
    return refuse(err, "built for %s, this host is %s", built, host);
}

static int check_header(const struct elf_source *s, Elf64_Ehdr *h, strata_error *err)
{
    if (s->size <= sizeof *h || !elf_read(s, 0, h, sizeof *h) ||
        memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
        return refuse(err, "not an ELF shared object (%llu bytes)",
                      (unsigned long long)s->size);
    if (h->e_ident[EI_CLASS] != ELFCLASS64)
        return refuse(err, "%s object, need 64-bit little-endian",
                      h->e_ident[EI_CLASS] == ELFCLASS32 ? "32-bit" : "unknown-class");
    if (h->e_ident[EI_DATA] != ELFDATA2LSB)
        return refuse(err, "%s object, need 64-bit little-endian",
                      h->e_ident[EI_DATA] == ELFDATA2MSB ? "big-endian"
                                                         : "unknown-endian");
    if (check_machine(h->e_machine, err) != STRATA_OK)
        return STRATA_EMODULE;
    if (h->e_type == ET_REL)
        return refuse(err, "an object file; link with -shared");
    if (h->e_type == ET_EXEC)
        return refuse(err, "an executable; link with -shared");
    if (h->e_type != ET_DYN)
        return refuse(err, "not an ELF shared object (type %u)", h->e_type);
    return STRATA_OK;
}

/* Refuse a range [at, at + n) that is not in the file; `what` names it. */
static int check_extent(const struct elf_source *s, const char *what, uint64_t at,
                        uint64_t n, strata_error *err)
{
    size_t end;
    if (!checked_size_add(at, n, &end))
        return refuse(err, "corrupt: %s at %llu has %llu bytes", what,
                      (unsigned long long)at, (unsigned long long)n);
    if (end > s->size)
        return refuse(err, "truncated: %s at %zu, file has %llu bytes", what, end,
                      (unsigned long long)s->size);
    return STRATA_OK;
}

static int read_segments(const struct elf_source *s, const Elf64_Ehdr *h, Elf64_Phdr *ph,
                         strata_error *err)
{
    size_t bytes = h->e_phnum * sizeof *ph;
    if (h->e_phentsize != sizeof *ph || h->e_phnum == 0 || h->e_phnum > MAX_SEGMENTS)
        return refuse(err, "corrupt: %u program headers of %u bytes", h->e_phnum,
                      h->e_phentsize);
    int status = check_extent(s, "program headers end", h->e_phoff, bytes, err);
    if (status == STRATA_OK && !elf_read(s, h->e_phoff, ph, bytes))
        status = unreadable(err);
    for (uint16_t i = 0; status == STRATA_OK && i < h->e_phnum; i++)
        if (ph[i].p_type != PT_NULL)
            status = check_extent(s, "segment ends", ph[i].p_offset, ph[i].p_filesz, err);
    if (status == STRATA_OK && h->e_shoff != 0)
        status = check_extent(s, "section headers end", h->e_shoff,
                              (uint64_t)h->e_shnum * h->e_shentsize, err);
    return status;
}

/* Linkers mark position-independent executables in the dynamic section. */
static bool marked_pie(const struct elf_source *s, const Elf64_Phdr *dynamic)
{
    Elf64_Dyn block[64];
    uint64_t n = dynamic->p_filesz / sizeof block[0];
    for (uint64_t at = 0; at < n && at < MAX_DYNAMIC; at += ARRAY_LENGTH(block)) {
        size_t count =
            n - at < ARRAY_LENGTH(block) ? (size_t)(n - at) : ARRAY_LENGTH(block);
        if (!elf_read(s, dynamic->p_offset + at * sizeof block[0], block,
                      count * sizeof block[0]))
            return false;
        for (size_t i = 0; i < count && block[i].d_tag != DT_NULL; i++)
            if (block[i].d_tag == DT_FLAGS_1)
                return (block[i].d_un.d_val & DF_1_PIE) != 0;
    }
    return false;
}

static int check_shared(const struct elf_source *s, const Elf64_Phdr *ph, size_t n,
                        strata_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (ph[i].p_type == PT_INTERP ||
            (ph[i].p_type == PT_DYNAMIC && marked_pie(s, &ph[i])))
            return refuse(err, "an executable; link with -shared");
    return STRATA_OK;
}

static int check_text(const char *text, size_t size, const char *field, strata_error *err)
{
    if (memchr(text, 0, size))
        return STRATA_OK;
    return refuse(err, "note is corrupt: %s does not end within %zu bytes", field, size);
}

/* Copies what a terminal can show; the rest becomes '?'. */
static const char *printable(char out[80], const char *text, size_t n)
{
    size_t i = 0;
    for (; i < n && i < 79; i++)
        out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    out[i] = '\0';
    return out;
}

static int check_layer_list(const char *list, strata_error *err)
{
    char shown[80];
    size_t n;
    for (const char *item; (item = name_next(&list, ',', &n));) {
        bool good =
            item[0] == '+' ? name_is_qualified(item + 1, n - 1) : name_is_layer(item, n);
        if (!good)
            return refuse(err,
                          "note is corrupt: '%s' in the layer list; write "
                          "\"Name,+namespace::Name\" without blanks",
                          printable(shown, item, n));
    }
    return STRATA_OK;
}

static int check_strings(const strata_note *note, strata_error *err)
{
    char shown[80];
    int status = check_text(note->ns, sizeof note->ns, "namespace", err);
    if (status == STRATA_OK)
        status = check_text(note->version, sizeof note->version, "version", err);
    if (status == STRATA_OK)
        status = check_text(note->layers, sizeof note->layers, "layer list", err);
    if (status != STRATA_OK)
        return status;
    size_t n = strlen(note->ns);
    if (!name_is_namespace(note->ns, n))
        return refuse(err, "note is corrupt: namespace '%s' is not [a-z][a-z0-9_.-]*",
                      printable(shown, note->ns, n));
    n = strlen(note->version);
    if (!name_is_tag(note->version, n))
        return refuse(err, "note is corrupt: version '%s' is not like \"1.0.0\"",
                      printable(shown, note->version, n));
    return check_layer_list(note->layers, err);
}

/* The note at `at`, whose description has desc_size bytes that lie in the file. */
static int take_note(const struct elf_source *s, uint64_t at, uint32_t desc_size,
                     strata_note *out, strata_error *err)
{
    enum { THROUGH_MAJOR = offsetof(strata_note, abi_minor) };
    strata_note note = {0};
    bool whole = desc_size >= sizeof note - NOTE_HEADER_BYTES;
    if (desc_size < THROUGH_MAJOR - NOTE_HEADER_BYTES)
        return refuse(err, "note is corrupt: %u bytes, need %zu", desc_size,
                      sizeof note - NOTE_HEADER_BYTES);
    if (!elf_read(s, at, &note, whole ? sizeof note : (size_t)THROUGH_MAJOR))
        return unreadable(err);
    if (note.magic != STRATA_NOTE_MAGIC)
        return refuse(err, "note is corrupt: magic 0x%08x, need 0x%08x", note.magic,
                      STRATA_NOTE_MAGIC);
    if (note.abi_major != STRATA_ABI_MAJOR)
        return refuse(err,
                      "needs plugin ABI %u, this is ABI %d.%d: rebuild it with this "
                      "release's headers, or use %s release of Strata",
                      note.abi_major, STRATA_ABI_MAJOR, STRATA_ABI_MINOR,
                      note.abi_major > STRATA_ABI_MAJOR ? "a newer" : "an older");
    if (!whole)
        return refuse(err, "note is corrupt: %u bytes, need %zu", desc_size,
                      sizeof note - NOTE_HEADER_BYTES);
    int status = check_strings(&note, err);
    if (status == STRATA_OK)
        *out = note;
    return status;
}

static void take_build_id(const struct elf_source *s, uint64_t at, uint32_t size,
                          char out[41])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char id[20];
    size_t n = size < sizeof id ? size : sizeof id;
    if (!elf_read(s, at, id, n))
        return;
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[id[i] >> 4];
        out[2 * i + 1] = digits[id[i] & 15];
    }
    out[2 * n] = '\0';
}

static uint64_t round_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) / align * align;
}

/* Walk one PT_NOTE segment until our note is found; true then. A file may carry a note
 * per ABI major, so a refused one is kept in err and the walk goes on. */
static bool walk_notes(const struct elf_source *s, const Elf64_Phdr *ph,
                       struct note_result *out, strata_error *err)
{
    const uint64_t align = ph->p_align == 8 ? 8 : 4;
    uint64_t at = ph->p_offset, end = ph->p_offset + ph->p_filesz;
    bool found = false;
    for (int i = 0; i < MAX_NOTES && at < end; i++) {
        Elf64_Nhdr h;
        char name[8] = "";
        if (end - at < sizeof h || !elf_read(s, at, &h, sizeof h))
            break;
        if (h.n_namesz <= sizeof name && !elf_read(s, at + sizeof h, name, h.n_namesz))
            break;
        uint64_t desc = at + round_up(sizeof h + (uint64_t)h.n_namesz, align);
        bool inside = desc <= end && h.n_descsz <= end - desc;
        if (!found && h.n_namesz == sizeof name && h.n_type == STRATA_NOTE_TYPE &&
            !memcmp(name, STRATA_NOTE_NAME "\0", sizeof name))
            found =
                take_note(s, at, inside ? h.n_descsz : 0, &out->note, err) == STRATA_OK;
        if (!inside)
            break;
        if (h.n_namesz == 4 && !memcmp(name, "GNU", 4) && h.n_type == NT_GNU_BUILD_ID)
            take_build_id(s, desc, h.n_descsz, out->build_id);
        at = desc + round_up(h.n_descsz, align);
    }
    return found;
}

static int find_note(const struct elf_source *s, const Elf64_Phdr *ph, size_t n,
                     struct note_result *out, strata_error *err)
{
    strata_error first = {0};
    bool found = false;
    for (size_t i = 0; i < n; i++)
        if (ph[i].p_type == PT_NOTE && walk_notes(s, &ph[i], out, &first))
            found = true;
    if (found)
        return STRATA_OK;
    if (first.status != STRATA_OK)
        return refuse(err, "%s", first.message);
    return refuse(err, "not a plugin (no %s): is STRATA_MODULE present?",
                  STRATA_NOTE_SECTION);
}

static int parse(const struct elf_source *s, bool examine, struct note_result *out,
                 strata_error *err)
{
    Elf64_Ehdr header;
    Elf64_Phdr segments[MAX_SEGMENTS];
    int status = check_header(s, &header, err);
    if (status == STRATA_OK)
        status = read_segments(s, &header, segments, err);
    if (status == STRATA_OK)
        status = check_shared(s, segments, header.e_phnum, err);
    if (status == STRATA_OK)
        status = find_note(s, segments, header.e_phnum, out, err);
    if (status == STRATA_OK && examine)
        status = elf_check(s, &header, segments, header.e_phnum, err);
    return status;
}

int note_parse(struct note_result *out, const void *bytes, size_t size, strata_error *err)
{
    const struct elf_source s = {.bytes = bytes, .fd = -1, .size = size};
    *out = (struct note_result){0};
    return parse(&s, true, out, err);
}

/* Where a read failed, what was made of the bytes says nothing. */
static int parse_file(int fd, bool examine, struct note_result *out, strata_error *err)
{
    strata_error of_bytes = {0};
    int failed = 0;
    const struct elf_source s = {.fd = fd, .size = out->size, .failed = &failed};
    const int status = parse(&s, examine, out, &of_bytes);
    if (failed) {
        errno = failed;
        return error_errno(err, status_of_errno(failed, STRATA_EIO), "cannot read");
    }
    return status == STRATA_OK ? status : error_set(err, status, "%s", of_bytes.message);
}

static int read_file(struct note_result *out, const char *path, bool examine,
                     strata_error *err)
{
    struct stat st;
    *out = (struct note_result){0};
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return refuse(err, "not found");
    if (fd < 0 && errno == ENXIO) /* a socket */
        return refuse(err, "not a regular file");
    if (fd < 0)
        return error_errno(err, status_of_errno(errno, STRATA_EMODULE), "cannot open");
    int status;
    if (fstat(fd, &st) != 0) {
        status = error_errno(err, status_of_errno(errno, STRATA_EMODULE),
                             "cannot read its size");
    } else if (!S_ISREG(st.st_mode)) {
        status = refuse(err, "not a regular file");
    } else {
        out->device = st.st_dev;
        out->inode = st.st_ino;
        out->size = (uint64_t)st.st_size;
        out->modified = st.st_mtim;
        out->changed = st.st_ctim;
        status = parse_file(fd, examine, out, err);
    }
    close(fd);
    return status;
}

int note_read(struct note_result *out, const char *path, strata_error *err)
{
    return read_file(out, path, false, err);
}

int note_examine(struct note_result *out, const char *path, strata_error *err)
{
    return read_file(out, path, true, err);
}

int note_accept(const strata_note *note, uint32_t driver, strata_error *err)
{
    if (note->abi_required_minor > STRATA_ABI_MINOR)
        return refuse(err,
                      "needs ABI %u.%u, this is %d.%d (it was built with %u.%u): use a "
                      "newer release of Strata",
                      note->abi_major, note->abi_required_minor, STRATA_ABI_MAJOR,
                      STRATA_ABI_MINOR, note->abi_major, note->abi_minor);
    /* Plain code runs under any sanitizer, only less is seen. */
    if (note->sanitizer >= ARRAY_LENGTH(sanitizers))
        return refuse(err, "built with sanitizer %u, which is unknown here",
                      note->sanitizer);
    if (note->sanitizer != STRATA_SANITIZER_NONE && note->sanitizer != STRATA_SANITIZER)
        return refuse(err, "built with %s, host is not: rebuild it with %s",
                      sanitizers[note->sanitizer], sanitizers[STRATA_SANITIZER]);
    if (driver != 0 && note->cudart / 1000 > driver / 1000)
        return refuse(err,
                      "built for CUDA %u, driver supports %u.%u: update the driver, or "
                      "rebuild with an older toolkit",
                      note->cudart / 1000, driver / 1000, driver % 1000 / 10);
    return STRATA_OK;
}
