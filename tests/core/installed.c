/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders of an installation that was moved, was not, or cannot be told.
 */
#include "core/installed.h"

#include "core/status.h"
#include "tests/support/scratch.h"

#define PLUGINS "/usr/lib/strata/plugins-1"
#define DEVICES "/usr/lib/strata/devices-1"

/* libstrata, configured for /usr/lib, lies in the scratch folder. */
static struct installed_file library;

static void start(void)
{
    scratch_make();
    library.folder = "/usr/lib";
    library.parts[INSTALLED_PLUGINS] = PLUGINS;
    library.parts[INSTALLED_DEVICES] = DEVICES;
    cr_assert_not_null(realpath(scratch, library.path));
    strcat(library.path, "/libstrata.so.0.0.0");
}

static void make_plugins(void)
{
    cr_assert(!mkdir(in_scratch("strata"), 0755) &&
              !mkdir(in_scratch("strata/plugins-1"), 0755));
}

TestSuite(installed, .init = start, .fini = scratch_remove);

/* The folders of a part: the one of that name beside the library, then the configured
 * one; NULL for none. */
static void expect_folders(enum installed_part part, const char *beside,
                           const char *configured)
{
    struct installed_folder found[INSTALLED_FOLDERS] = {{""}};
    char want[PATH_MAX];
    size_t n = installed_folders_of(found, &library, part), at = 0;
    cr_assert_eq(n, (size_t)(!!beside + !!configured), "%zu: %s, %s", n, found[0].path,
                 found[1].path);
    if (beside) {
        snprintf(want, sizeof want, "%s", library.path);
        strcpy(strrchr(want, '/') + 1, beside);
        cr_expect_str_eq(found[at++].path, want);
    }
    if (configured)
        cr_expect_str_eq(found[at].path, configured);
}

Test(installed, folders_lie_to_each_other_as_configured)
{
    static const struct {
        const char *file, *folder, *wanted, *found; /* NULL: nowhere */
    } cases[] = {
        {"/a/bin/strata", "/usr/bin", "/usr/lib/strata", "/a/lib/strata"},
        {"/a/b/bin/strata", "/usr/bin", "/usr/lib/arm/s", "/a/b/lib/arm/s"},
        {"/a/lib/arm/l.so", "/usr/lib/arm", "/usr/lib/arm/s/1", "/a/lib/arm/s/1"},
        {"/a/x86/bin/strata", "/o/x86/bin", "/o/lib/s", "/a/lib/s"},
        {"/a/bin/strata", "/usr//bin/", "/usr/lib/s", "/a/lib/s"},
        {"/bin/strata", "/usr/local/bin", "/usr/local/lib/s", "/lib/s"},
        {"/l.so", "/usr/lib", "/usr/lib/s", "/s"},
        {"/a/bin/strata", "/usr/bin", "/usr/binary/s", "/a/binary/s"},
        {"/strata", "/usr/bin", "/usr/lib/s", NULL},
        {"/a/_build/strata", "/usr/bin", "/usr/lib/s", NULL},
        {"/a/x86/bin/strata", "/o/arm/bin", "/o/lib/s", NULL},
        {"/a/sbin/strata", "/usr/bin", "/usr/lib/s", NULL},
        {"/a/bin/strata", "/usr/bin", "/opt/lib/s", NULL},
        {"/a/bin/strata", "/bin", "/lib/s", NULL},
        {"/a/b/c/bin/strata", "/usr/x/../bin", "/usr/lib/s", NULL},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char out[PATH_MAX] = "";
        bool found =
            installed_beside(out, cases[i].file, cases[i].folder, cases[i].wanted);
        cr_expect_eq(found, cases[i].found != NULL, "case %zu: %s", i, out);
        if (found && cases[i].found)
            cr_expect_str_eq(out, cases[i].found, "case %zu: %s", i, out);
    }
}

Test(installed, a_path_that_is_too_long_is_none)
{
    char out[PATH_MAX], file[PATH_MAX];
    memset(file, 'a', sizeof file - 1);
    file[sizeof file - 1] = '\0';
    file[0] = file[sizeof file - 6] = '/';
    cr_expect(installed_beside(out, file, "/o/lib", "/o/lib/s"));
    cr_expect_not(installed_beside(out, file, "/o/lib", "/o/lib/strata/plugins-1"));
}

Test(installed, a_moved_tree_has_its_own_folders_alone)
{
    make_plugins();
    expect_folders(INSTALLED_PLUGINS, "strata/plugins-1", NULL);
    expect_folders(INSTALLED_DEVICES, "strata/devices-1", NULL); /* though not there */
}

Test(installed, without_plugins_beside_it_the_configured_ones_follow)
{
    expect_folders(INSTALLED_PLUGINS, "strata/plugins-1", PLUGINS);
    expect_folders(INSTALLED_DEVICES, "strata/devices-1", DEVICES);
}

Test(installed, a_privileged_program_has_the_configured_ones_alone)
{
    make_plugins();
    library.privileged = true;
    expect_folders(INSTALLED_PLUGINS, NULL, PLUGINS);
    expect_folders(INSTALLED_DEVICES, NULL, DEVICES);
}

Test(installed, a_file_that_is_not_known_has_the_configured_ones_alone)
{
    library.path[0] = '\0';
    expect_folders(INSTALLED_PLUGINS, NULL, PLUGINS);
}

/* As GNU stow and the like lay out a tree. */
Test(installed, a_file_that_the_configured_place_links_to_was_not_moved)
{
    char place[300], plugins[350];
    make_plugins();
    spill_text("libstrata.so.0.0.0", "");
    snprintf(place, sizeof place, "%s/place", scratch);
    snprintf(plugins, sizeof plugins, "%s/strata/plugins-1", place);
    library.folder = place;
    library.parts[INSTALLED_PLUGINS] = plugins;
    expect_folders(INSTALLED_PLUGINS, "strata/plugins-1", NULL);
    cr_assert(!mkdir(place, 0755) &&
              !symlink(library.path, in_scratch("place/libstrata.so.0.0.0")));
    expect_folders(INSTALLED_PLUGINS, NULL, plugins);
}
