/* SPDX-License-Identifier: Apache-2.0
 *
 * The preflight over files that are damaged, foreign, or not plugins.
 */
#include "registry/note.h"

#include <elf.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/broken/build.h"
#include "tests/support/reads.h"

TestSuite(note, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

/* Offsets in the note, from its magic. */
#define AT(field) (offsetof(strata_note, field) - offsetof(strata_note, magic))

#if defined(__x86_64__)
#define FOREIGN EM_AARCH64
#define FOREIGN_TEXT "built for aarch64, this host is x86-64"
#else
#define FOREIGN EM_X86_64
#define FOREIGN_TEXT "built for x86-64, this host is aarch64"
#endif

static void expect_refused(const char *path, const char *text)
{
    struct note_result result;
    strata_error err = {0};
    cr_expect_eq(note_read(&result, path, &err), STRATA_EMODULE, "%s: accepted", path);
    cr_expect_not_null(strstr(err.message, text), "%s: want '%s', got '%s'", path, text,
                       err.message);
}

static struct blob good(void)
{
    return slurp(build("good.so", LEAKY, SHARED " -Wl,--build-id=sha1"));
}

Test(note, a_good_module_is_read)
{
    struct note_result from_file, from_memory;
    strata_error err = {0};
    struct blob b = good();
    cr_assert_eq(note_read(&from_file, in_scratch("good.so"), &err), STRATA_OK, "%s",
                 err.message);
    cr_assert_eq(note_parse(&from_memory, b.bytes, b.size, &err), STRATA_OK);
    cr_expect_str_eq(from_file.note.ns, "org.example");
    cr_expect_str_eq(from_file.note.version, "1.0.0");
    cr_expect_str_eq(from_file.note.layers, "LeakyReLU");
    cr_expect_eq(strlen(from_file.build_id), 40);
    cr_expect_neq(from_file.inode, 0);
    cr_expect_eq(memcmp(&from_file.note, &from_memory.note, sizeof(strata_note)), 0);
    cr_expect_str_eq(from_file.build_id, from_memory.build_id);
    cr_expect_eq(note_accept(&from_file.note, 0, &err), STRATA_OK);
    free(b.bytes);
}

Test(note, survives_strip_and_links_without_the_core)
{
    struct note_result result;
    strata_error err = {0};
    build("lean.so", LEAKY, SHARED " -Wl,-z,defs -s");
    cr_expect_eq(note_read(&result, in_scratch("lean.so"), &err), STRATA_OK, "%s",
                 err.message);
}

Test(note, what_is_no_regular_file_is_refused_without_hanging)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "s.so"};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(mkfifo(in_scratch("fifo.so"), 0600), 0);
    cr_assert_eq(mkdir(in_scratch("folder.so"), 0700), 0);
    cr_assert_eq(chdir(scratch), 0); /* a socket's path is short */
    cr_assert_eq(bind(s, (struct sockaddr *)&address, sizeof address), 0);
    expect_refused(in_scratch("missing.so"), "not found");
    expect_refused(in_scratch("folder.so"), "not a regular file");
    expect_refused(in_scratch("fifo.so"), "not a regular file");
    expect_refused(in_scratch("s.so"), "not a regular file");
    close(s);
}

Test(note, what_is_no_elf_file_is_refused)
{
    struct blob b = good();
    expect_refused(spill("empty.so", "", 0), "not an ELF shared object (0 bytes)");
    expect_refused(spill("text.so", "hello\n", 6), "not an ELF shared object (6 bytes)");
    expect_refused(spill("header.so", b.bytes, 64),
                   "not an ELF shared object (64 bytes)");
    expect_refused(in_scratch("missing/x.so"), "not found");
    free(b.bytes);
}

Test(note, every_truncation_is_refused)
{
    struct blob b = good();
    Elf64_Ehdr header;
    char want[128];
    memcpy(&header, b.bytes, sizeof header);
    for (size_t size = sizeof header + 1; size < b.size; size++) {
        struct note_result result;
        strata_error err = {0};
        int status = note_parse(&result, b.bytes, size, &err);
        cr_assert_eq(status, STRATA_EMODULE, "cut at %zu of %zu: accepted", size, b.size);
        cr_assert_not_null(strstr(err.message, "truncated: "), "cut at %zu: %s", size,
                           err.message);
    }
    size_t last = 0;
    for (int i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr ph;
        memcpy(&ph, b.bytes + header.e_phoff + (size_t)i * sizeof ph, sizeof ph);
        if (ph.p_type == PT_LOAD)
            last = ph.p_offset + ph.p_filesz;
    }
    snprintf(want, sizeof want, "truncated: segment ends at %zu, file has %zu bytes",
             last, last - 1);
    expect_refused(spill("cut.so", b.bytes, last - 1), want);
    free(b.bytes);
}

Test(note, foreign_objects_are_named)
{
    static const struct {
        const char *name;
        size_t at;
        unsigned char value;
        const char *text;
    } cases[] = {
        {"machine", offsetof(Elf64_Ehdr, e_machine), FOREIGN, FOREIGN_TEXT},
        {"class", EI_CLASS, ELFCLASS32, "32-bit object, need 64-bit little-endian"},
        {"data", EI_DATA, ELFDATA2MSB, "big-endian object, need 64-bit little-endian"},
        {"core", offsetof(Elf64_Ehdr, e_type), ET_CORE, "not an ELF shared object (type"},
    };
    struct blob b = good();
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        unsigned char kept = b.bytes[cases[i].at];
        b.bytes[cases[i].at] = cases[i].value;
        expect_refused(spill("foreign.so", b.bytes, b.size), cases[i].text);
        b.bytes[cases[i].at] = kept;
    }
    free(b.bytes);
}

Test(note, programs_and_object_files_are_named)
{
    expect_refused(build("fixed", "broken/program.c", "-no-pie"),
                   "an executable; link with -shared");
    expect_refused(build("pie", "broken/program.c", "-fPIE -pie"),
                   "an executable; link with -shared");
    expect_refused(build("object.so", LEAKY, "-c -fPIC"),
                   "an object file; link with -shared");
    /* A static PIE has no interpreter, only the mark. */
    struct blob b = slurp(in_scratch("pie"));
    Elf64_Ehdr header;
    memcpy(&header, b.bytes, sizeof header);
    for (int i = 0; i < header.e_phnum; i++) {
        unsigned char *ph = b.bytes + header.e_phoff + (size_t)i * sizeof(Elf64_Phdr);
        if (ph[0] == PT_INTERP)
            ph[0] = PT_NULL;
    }
    expect_refused(spill("static", b.bytes, b.size), "an executable; link with -shared");
    free(b.bytes);
}

Test(note, a_library_without_a_note_is_no_plugin)
{
    expect_refused(
        build("plain.so", "broken/no_note.c", SHARED " -DMARKER='\"%s/ran\"'", scratch),
        "not a plugin (no .note.strata): is STRATA_MODULE present?");
    cr_expect_neq(access(in_scratch("ran"), F_OK), 0, "its constructor ran");
}

Test(note, corrupt_notes_say_what_is_wrong)
{
    static const struct {
        size_t at;
        size_t size;
        const char *bytes;
        const char *text;
    } cases[] = {
        {0, 1, "X", "note is corrupt: magic 0x41545258, need 0x41545253"},
        {AT(abi_major), 1, "\2",
         "needs plugin ABI 2, this is ABI " THIS_ABI ": rebuild it with this release's headers, "
         "or use a newer release of Strata"},
        {AT(abi_major), 1, "\0", "or use an older release of Strata"},
        {AT(ns), 1, "O", "note is corrupt: namespace 'Org.example'"},
        {AT(ns), 1, "", "note is corrupt: namespace ''"},
        {AT(version), 1, "\n", "note is corrupt: version '?.0.0'"},
        {AT(layers), 1, "l", "note is corrupt: 'leakyReLU' in the layer list"},
        {AT(layers) + 5, 1, ",", "note is corrupt: 'eLU' in the layer list"},
        {AT(layers) + 5, 2, ", ", "note is corrupt: ' LU' in the layer list"},
        {AT(layers), 1, "+", "note is corrupt: '+eakyReLU' in the layer list"},
        {AT(layers), 1, "", "note is corrupt: '' in the layer list"},
    };
    struct blob b = good();
    size_t magic = find_magic(b);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct blob copy = {malloc(b.size), b.size};
        memcpy(copy.bytes, b.bytes, b.size);
        memcpy(copy.bytes + magic + cases[i].at, cases[i].bytes, cases[i].size);
        expect_refused(spill("note.so", copy.bytes, copy.size), cases[i].text);
        free(copy.bytes);
    }
    free(b.bytes);
}

Test(note, strings_must_end_inside_their_fields)
{
    static const struct {
        size_t at, size;
        const char *text;
    } cases[] = {
        {AT(ns), sizeof(((strata_note *)0)->ns), "namespace does not end within 64"},
        {AT(version), sizeof(((strata_note *)0)->version), "version does not end within"},
        {AT(layers), sizeof(((strata_note *)0)->layers),
         "layer list does not end within"},
    };
    struct blob b = good();
    size_t magic = find_magic(b);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct blob copy = {malloc(b.size), b.size};
        memcpy(copy.bytes, b.bytes, b.size);
        memset(copy.bytes + magic + cases[i].at, 'a', cases[i].size);
        expect_refused(spill("open.so", copy.bytes, copy.size), cases[i].text);
        free(copy.bytes);
    }
    /* A note that says it is short. */
    size_t desc_size =
        magic - offsetof(strata_note, magic) + offsetof(strata_note, desc_size);
    b.bytes[desc_size] = 100;
    b.bytes[desc_size + 1] = 0;
    expect_refused(spill("short.so", b.bytes, b.size),
                   "note is corrupt: 100 bytes, need");
    free(b.bytes);
}

static void expect_unfit(const strata_note *note, uint32_t driver, const char *text)
{
    strata_error err = {0};
    cr_expect_eq(note_accept(note, driver, &err), STRATA_EMODULE, "accepted: %s", text);
    cr_expect_not_null(strstr(err.message, text), "want '%s', got '%s'", text,
                       err.message);
}

Test(note, what_a_module_needs_is_compared_with_the_host)
{
    const uint32_t other = STRATA_SANITIZER == STRATA_SANITIZER_THREAD
                               ? STRATA_SANITIZER_ADDRESS
                               : STRATA_SANITIZER_THREAD;
    struct note_result result;
    strata_error err = {0};
    strata_note note;
    build("minor.so", LEAKY, SHARED " -DSTRATA_ABI_REQUIRED_MINOR=99");
    cr_assert_eq(note_read(&result, in_scratch("minor.so"), &err), STRATA_OK);
    expect_unfit(&result.note, 0, "needs ABI 1.99, this is " THIS_ABI);

    build("other.so", LEAKY, SHARED " -DCUDART_VERSION=13000 -DSTRATA_SANITIZER=%u",
          other);
    cr_assert_eq(note_read(&result, in_scratch("other.so"), &err), STRATA_OK);
    expect_unfit(&result.note, 0,
                 other == STRATA_SANITIZER_THREAD ? "built with TSan, host is not"
                                                  : "built with ASan, host is not");
    note = result.note;
    note.sanitizer = STRATA_SANITIZER_NONE;
    expect_unfit(&note, 12080, "built for CUDA 13, driver supports 12.8");
    cr_expect_eq(note_accept(&note, 0, &err), STRATA_OK, "unknown driver");
    cr_expect_eq(note_accept(&note, 13000, &err), STRATA_OK, "equal driver");
    note.cudart = 12090; /* minor versions of one major run on each other */
    cr_expect_eq(note_accept(&note, 12080, &err), STRATA_OK, "minor ahead of the driver");
    note.abi_minor = 7;
    cr_expect_eq(note_accept(&note, 0, &err), STRATA_OK, "built with a newer minor");
    note.sanitizer = 9;
    expect_unfit(&note, 0, "sanitizer 9");
}

Test(note, no_single_byte_change_breaks_the_reader)
{
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    struct blob b = good();
    size_t refused = 0, magic = find_magic(b);
    for (size_t i = 0; i < b.size; i++) {
        if (i >= 4096 && (i < magic - 64 || i > magic + sizeof(strata_note)))
            continue;
        unsigned char kept = b.bytes[i];
        for (size_t k = 0; k < ARRAY_LENGTH(values); k++) {
            struct note_result result;
            strata_error err = {0};
            b.bytes[i] = values[k];
            int status = note_parse(&result, b.bytes, b.size, &err);
            refused += status != STRATA_OK;
            cr_assert(status == STRATA_OK || (status == STRATA_EMODULE && err.length > 0),
                      "byte %zu = %u: status %d", i, values[k], status);
            cr_assert_not_null(memchr(result.note.layers, 0, sizeof result.note.layers));
        }
        b.bytes[i] = kept;
    }
    cr_expect_gt(refused, 200);
    free(b.bytes);
}

Test(note, reading_one_takes_a_few_small_reads)
{
    struct note_result result;
    build("good.so", LEAKY, SHARED);
    const struct reads before = reads_now();
    for (int i = 0; i < 100; i++)
        cr_assert_eq(note_read(&result, in_scratch("good.so"), NULL), STRATA_OK);
    expect_few_reads(&before, 100);
}
