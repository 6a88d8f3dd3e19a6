/* SPDX-License-Identifier: Apache-2.0
 *
 * Damaged modules: refused before they are opened, or opened in another process first.
 */
#include "registry/trial/trial.h"

#include <elf.h>
#include <sys/resource.h>

#include "registry/probe.h"

#include "tests/broken/folders.h"

/* A trial program that counts how often it is started, and a cache folder. */
static void start(void)
{
    char script[600], *program = realpath("strata-trial", NULL);
    folders_start();
    folder("cache"), folder("p");
    cr_assert_not_null(program, "no strata-trial in the working directory");
    snprintf(script, sizeof script, "#!/bin/sh\necho >>'%s/starts'\nexec '%s' \"$@\"\n",
             scratch, program);
    spill("trial", script, strlen(script));
    cr_assert_eq(chmod(in_scratch("trial"), 0755), 0);
    setenv("STRATA_TRIAL", in_scratch("trial"), 1);
    setenv("XDG_CACHE_HOME", in_scratch("cache"), 1);
    free(program);
}

TestSuite(trial, .init = start, .fini = scratch_remove, .timeout = 600);

static long starts(void)
{
    struct stat st;
    return stat(in_scratch("starts"), &st) == 0 ? (long)st.st_size : 0;
}

static void expect_reason(strata_registry *r, const char *file, const char *text)
{
    for (size_t i = 0; i < registry_rejections(r); i++) {
        struct module_rejection x = registry_rejection(r, i);
        if (strstr(x.path, file)) {
            cr_expect_not_null(strstr(x.reason, text), "%s: want '%s', got '%s'", file,
                               text, x.reason);
            return;
        }
    }
    cr_expect_fail("%s was not rejected", file);
}

Test(trial, what_ends_a_process_is_rejected_and_the_others_go_on)
{
    build("p/a.so", "broken/constructor.c",
          SHARED " -Wl,--build-id=none -DCONSTRUCTOR='*nowhere = 1'");
    build("p/b.so", LEAKY, SHARED);
    build("p/c.so", "broken/constructor.c",
          SHARED " -Wl,--build-id=none -DCONSTRUCTOR='_exit(0)'");
    build("p/d.so", "broken/entry.c",
          SHARED " -Wl,--build-id=none -DENTRY='*nowhere = 1'");
    strata_registry *r = over(in_scratch("p"), NULL);
    find(r, "LeakyReLU");
    expect_reason(r, "a.so", "process of its own: constructor killed by SIGSEGV");
    expect_reason(r, "c.so", "process of its own: constructor called exit(0)");
    expect_reason(r, "d.so", "process of its own: entry killed by SIGSEGV");
    cr_expect_eq(starts(), 4, "%ld", starts()); /* one for each, and b alone */
    strata_registry_destroy(r);
}

static void expect_starts(long expected, const char *when)
{
    strata_registry *r = over(in_scratch("p"), NULL);
    find(r, "LeakyReLU");
    strata_registry_destroy(r);
    cr_expect_eq(starts(), expected, "%s: %ld", when, starts());
}

Test(trial, what_is_known_to_be_good_is_tried_again_when_it_changed)
{
    build("p/b.so", LEAKY, SHARED);
    expect_starts(1, "new");
    expect_starts(1, "known");
    cr_assert_eq(chmod(in_scratch("p/b.so"), 0700), 0);
    expect_starts(2, "its ctime changed");
    cr_assert_eq(chmod(in_scratch("cache/strata/modules"), 0666), 0);
    expect_starts(2, "the record may be anybody's");
    cr_assert_eq(unlink(in_scratch("cache/strata/modules")), 0);
    expect_starts(3, "no record");
    setenv("STRATA_TRIAL", "no", 1);
    cr_assert_eq(chmod(in_scratch("p/b.so"), 0755), 0);
    expect_starts(3, "switched off");
    setenv("STRATA_TRIAL", in_scratch("trial"), 1);
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    expect_starts(3, "no cache folder");
}

/* [begin, end) of the sections that a loader works through. */
static bool next_section(struct blob b, size_t *at, size_t *begin, size_t *end)
{
    const Elf64_Ehdr *h = (const void *)b.bytes;
    const Elf64_Shdr *s = (const void *)(b.bytes + h->e_shoff);
    for (; *at < h->e_shnum; ++*at) {
        const Elf64_Shdr *x = &s[*at];
        if (x->sh_type != SHT_DYNAMIC && x->sh_type != SHT_RELA &&
            x->sh_type != SHT_DYNSYM && x->sh_type != SHT_GNU_HASH &&
            x->sh_type != SHT_GNU_verneed && x->sh_type != SHT_GNU_versym)
            continue;
        *begin = x->sh_offset, *end = x->sh_offset + x->sh_size;
        ++*at;
        return true;
    }
    return false;
}

/* Without the preflight's word, in a process that may end as it likes. */
static bool loads(struct blob b)
{
    char reason[256];
    spill("tried.so", b.bytes, b.size);
    return registry_survives(in_scratch("tried.so"), 60000, reason, sizeof reason);
}

Test(trial, no_changed_byte_of_the_loader_s_tables_ends_this_process)
{
    struct blob b = slurp(build("good.so", LEAKY, SHARED " -Wl,--build-id=none"));
    size_t at = 0, begin, end, refused = 0, passed = 0;
    cr_assert(loads(b));
    build("p/good.so", "broken/layer.c", SHARED);
    while (next_section(b, &at, &begin, &end))
        for (size_t i = begin; i < end; i++) {
            struct note_result unused;
            char name[32];
            const unsigned char kept = b.bytes[i];
            b.bytes[i] ^= (unsigned char)(i % 3 ? 1 << i % 8 : 0xff);
            if (note_parse(&unused, b.bytes, b.size, NULL) == STRATA_OK) {
                snprintf(name, sizeof name, "p/%05zu.so", i);
                spill(name, b.bytes, b.size);
                passed++;
            } else {
                refused++;
            }
            b.bytes[i] = kept;
        }
    strata_registry *r = over(in_scratch("p"), NULL);
    strata_error err = {0};
    cr_expect_eq(registry_load_all(r, &err), STRATA_OK, "%s", err.message);
    find(r, "Probe");
    cr_log_info("%zu refused unopened, %zu opened, in %ld processes", refused, passed,
                starts());
    cr_expect_gt(refused, passed);
    strata_registry_destroy(r);
    free(b.bytes);
}

/* As a copy leaves it that broke off, onto a file of the whole size. */
Test(trial, a_file_that_ends_in_zeros_is_refused_unopened)
{
    struct blob b = slurp(build("good.so", LEAKY, SHARED));
    unsigned char *cut = malloc(b.size);
    cr_assert_not_null(cut);
    for (size_t at = 64; at + 64 <= b.size; at += 64) {
        struct note_result unused;
        strata_error err = {0};
        memcpy(cut, b.bytes, at);
        memset(cut + at, 0, b.size - at);
        cr_expect_eq(note_parse(&unused, cut, b.size, &err), STRATA_EMODULE,
                     "cut at %zu: accepted", at);
        cr_expect_gt(err.length, 0);
    }
    free(cut);
    free(b.bytes);
}

Test(trial, a_loader_without_memory_is_no_fault_of_the_module)
{
    struct module *m;
    struct rlimit limit;
    strata_error err = {0};
    cr_assert_eq(module_open(&m, build("large.so", "broken/large.c", SHARED), 0, &err),
                 STRATA_OK, "%s", err.message);
    cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
    cr_assert_eq(setrlimit(RLIMIT_AS, &(struct rlimit){1u << 30, limit.rlim_max}), 0);
    int status = module_load(m, NULL, NULL, &err);
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    cr_expect_eq(status, STRATA_ENOMEM, "%s", err.message);
    cr_expect_not_null(strstr(err.message, "out of memory: "), "%s", err.message);
    module_free(m);
}
