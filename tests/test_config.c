/* SPDX-License-Identifier: Apache-2.0
 *
 * The INI reader: what it gives, where it says things are, what it refuses. Malformed
 * files stand in tests/data/bad-ini and are run by test_network.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/config.h"

#define MIB (1 << 20)

static char scratch[256];

static void make_scratch(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/strata-config-XXXXXX", base ? base : "/tmp");
    cr_assert_not_null(mkdtemp(scratch));
}

static void remove_scratch(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    cr_expect_eq(system(command), 0);
}

TestSuite(config, .init = make_scratch, .fini = remove_scratch);

static const char *spill(const char *name, const char *text)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static struct config *parse_with(const char *text, size_t size,
                                 const strata_network_options *options)
{
    struct config *c;
    strata_error err = {0};
    cr_assert_eq(config_parse(&c, text, size, "t.ini", options, &err), STRATA_OK, "%s",
                 err.message);
    return c;
}

static struct config *parse(const char *text)
{
    return parse_with(text, strlen(text), NULL);
}

static struct config *parse_good(const char *text)
{
    strata_error err = {0};
    struct config *c = parse(text);
    cr_assert_eq(config_finish(c, &err), STRATA_OK, "%s", err.message);
    return c;
}

static struct config_section *section(struct config *c, const char *kind,
                                      const char *name)
{
    for (size_t i = 0; i < config_sections(c); i++) {
        struct config_section *s = config_section(c, i);
        if (!strcmp(s->kind, kind) && !strcmp(s->name, name))
            return s;
    }
    cr_assert_fail("no [%s %s]", kind, name);
    return NULL;
}

static struct config_pair *pair(struct config *c, const char *kind, const char *name,
                                const char *key)
{
    struct config_pair *p = config_get(section(c, kind, name), key);
    cr_assert_not_null(p, "no %s in [%s %s]", key, kind, name);
    return p;
}

static void expect_place(const char *what, struct config_place p, int line, int column,
                         int length)
{
    cr_expect(p.line == line && p.column == column && p.length == length,
              "%s: %d:%d+%d, want %d:%d+%d", what, p.line, p.column, p.length, line,
              column, length);
}

/* All errors of a text; static. */
static const char *errors_with(const char *text, const strata_network_options *options)
{
    static strata_error err;
    memset(&err, 0, sizeof err);
    struct config *c = parse_with(text, strlen(text), options);
    cr_expect_eq(config_finish(c, &err), STRATA_EPARSE, "accepted: %s", text);
    config_free(c);
    return err.message;
}

/* ---- lines ---- */

Test(config, keeps_sections_and_pairs_in_order_with_their_places)
{
    struct config *c = parse_good("; head\n\n[network]\nformat = 1 ; version\n"
                                  "  ; an indented comment\n[ layer   conv1 ]\n"
                                  "pad=2\nkernel  =  3x3\t\n# other comment\n"
                                  "[build]\n");
    cr_assert_eq(config_sections(c), 3);
    cr_expect_str_eq(config_section(c, 0)->kind, "network");
    cr_expect_str_eq(config_section(c, 1)->name, "conv1");
    cr_expect_eq(config_section(c, 2)->n_pairs, 0, "an empty section is there");
    expect_place("header", config_section(c, 1)->place, 6, 1, 17);
    struct config_pair *p = pair(c, "layer", "conv1", "kernel");
    cr_expect_str_eq(p->value, "3x3");
    expect_place("key", p->key_place, 8, 1, 6);
    expect_place("value", p->value_place, 8, 12, 3);
    cr_expect_str_eq(pair(c, "network", "", "format")->value, "1");
    cr_expect_null(config_get(config_section(c, 0), "pad"));
    config_free(c);
}

Test(config, reads_any_line_ends_marks_and_quotes)
{
    static const struct {
        const char *name, *text, *value;
        int column;
    } cases[] = {
        {"no line end", "[network]\nname = v", "v", 8},
        {"CR LF", "[network]\r\nname = v\r\n", "v", 8},
        {"byte order mark", "\xef\xbb\xbf[network]\nname = v\n", "v", 8},
        {"quoted", "[network]\nname = \"a, b=c [d]\"\n", "a, b=c [d]", 8},
        {"quoted hash", "[network]\nname = \"a # b\"\n", "a # b", 8},
        {"quoted empty", "[network]\nname = \"\"\n", "", 8},
        {"equals in value", "[network]\nname = a=b:c\n", "a=b:c", 8},
        {"semicolon in value", "[network]\nname = a;b\n", "a;b", 8},
        {"hash in value", "[network]\nname = a#b\n", "a#b", 8},
        {"UTF-8", "[network]\nname = \xc3\xa9t\xc3\xa9\n", "\xc3\xa9t\xc3\xa9", 8},
        {"brackets", "[network]\nname = [x]\n", "[x]", 8},
        {"dollars", "[network]\nname = a$$b$$\n", "a$b$", 8},
        {"no blanks", "[network]\nname=v\n", "v", 6},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct config *c = parse_good(cases[i].text);
        struct config_pair *p = pair(c, "network", "", "name");
        cr_expect_str_eq(p->value, cases[i].value, "%s: '%s'", cases[i].name, p->value);
        cr_expect_eq(p->value_place.column, cases[i].column, "%s", cases[i].name);
        config_free(c);
    }
}

Test(config, keeps_long_lines_keys_and_names_whole)
{
    /* Past inih's buffers of 200, 50 and 50 bytes; up to the limits. */
    static const int lengths[] = {40, 49, 50, 180, 197, 198, 199, 200, 201, 1000, 4087};
    char *text = calloc(1, 3 * 4096), value[4200], key[65], name[129];
    memset(key, 'k', 64), key[64] = '\0';
    memset(name, 'n', 128), name[128] = '\0';
    for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
        memset(value, 'v', sizeof value);
        value[lengths[i]] = '\0';
        snprintf(text, 3 * 4096, "[layer %s]\ntype = T\n%s = 1\nvalue  = %s\nlast = 2\n",
                 name, key, value);
        struct config *c = parse_good(text);
        cr_expect_str_eq(pair(c, "layer", name, "value")->value, value, "length %d",
                         lengths[i]);
        cr_expect_str_eq(pair(c, "layer", name, key)->value, "1");
        expect_place("after it", pair(c, "layer", name, "last")->key_place, 5, 1, 4);
        cr_expect_eq(section(c, "layer", name)->n_pairs, 4);
        config_free(c);
    }
    free(text);
}

Test(config, joins_continued_lines_and_finds_places_in_them)
{
    struct config *c = parse_good("[layer a]\ninputs = one, \\\n    two, \\\n\tthree\n"
                                  "pad = 1\n");
    struct config_pair *p = pair(c, "layer", "a", "inputs");
    struct config_item *items;
    size_t n;
    cr_expect_str_eq(p->value, "one, two, three");
    cr_assert(config_list(c, p, &items, &n) && n == 3);
    expect_place("one", config_value_place(c, p, items[0].offset, 3), 2, 10, 3);
    expect_place("two", config_value_place(c, p, items[1].offset, 3), 3, 5, 3);
    expect_place("three", config_value_place(c, p, items[2].offset, 5), 4, 2, 5);
    expect_place("pad", pair(c, "layer", "a", "pad")->key_place, 5, 1, 3);
    config_list_free(items, n);
    config_free(c);
}

Test(config, a_comment_ends_a_line_before_its_backslash)
{
    struct config *c = parse_good("[layer a]\npad = 1 ; note \\\nkernel = 3\n; x \\\n"
                                  "stride = 2\n");
    cr_expect_str_eq(pair(c, "layer", "a", "pad")->value, "1");
    cr_expect_str_eq(pair(c, "layer", "a", "kernel")->value, "3");
    cr_expect_str_eq(pair(c, "layer", "a", "stride")->value, "2");
    config_free(c);
}

/* ---- messages ---- */

Test(config, shows_place_line_and_caret)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"[network]\nformat = 1 # one\n",
         "t.ini:2:12: error: ' #' starts no comment after a value; write ' ;', or quote "
         "the value\n    format = 1 # one\n               ^~~~~"},
        {"[network]\n\xc3\xa9\xc3\xa9 = 1\n",
         "t.ini:2:1: error: '\xc3\xa9\xc3\xa9' is not a key: a letter or '_' first, then "
         "letters, digits and '_'\n    \xc3\xa9\xc3\xa9 = 1\n    ^~"},
        {"[network]\nname =\t\"a\tb\n",
         "t.ini:2:8: error: the quote is not closed\n    name = \"a b\n           ^~~~"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        cr_expect_str_eq(errors_with(cases[i].text, NULL), cases[i].message, "%s",
                         errors_with(cases[i].text, NULL));
}

Test(config, shows_a_window_of_a_long_line)
{
    char text[4200];
    int n = snprintf(text, sizeof text, "[network]\nname = ");
    memset(text + n, 'v', 3000);
    strcpy(text + n + 3000, " # tail\n");
    const char *message = errors_with(text, NULL), *line = strchr(message, '\n');
    cr_assert_not_null(line);
    const char *caret = strchr(line + 1, '\n');
    cr_assert_not_null(caret);
    cr_expect_lt(caret - line, 100);
    cr_expect_eq(line[strcspn(caret + 1, "^") + 1], '#', "%s", message);
}

Test(config, collects_twenty_errors_in_the_order_of_places)
{
    char text[4096] = "[bench]\n";
    for (int i = 0; i < 27; i++)
        strcat(text, "no pair\n");
    const char *message = errors_with(text, NULL), *at = message;
    for (int line = 2; line < 22; line++) {
        char want[32];
        snprintf(want, sizeof want, "t.ini:%d:1: error", line);
        at = strstr(at, want);
        cr_assert_not_null(at, "%s is not in order in %s", want, message);
    }
    cr_expect_null(strstr(message, "t.ini:22:"));
    cr_expect_not_null(strstr(message, "\nand 7 more"), "%s", message);
}

Test(config, counts_what_the_message_has_no_room_for)
{
    char text[8192] = "[bench]\n", label[200];
    strata_error err = {0};
    struct config *c;
    memset(label, 'l', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    for (int i = 0; i < 30; i++) {
        memset(text + strlen(text), 'k', 160);
        strcat(text, "\n");
    }
    cr_assert_eq(config_parse(&c, text, strlen(text), label, NULL, &err), STRATA_OK);
    cr_assert_eq(config_finish(c, &err), STRATA_EPARSE);
    size_t shown = 0;
    for (const char *at = err.message; (at = strstr(at, ": error: ")); at++)
        shown++;
    char tail[32];
    snprintf(tail, sizeof tail, "\nand %zu more", 30 - shown);
    cr_expect_str_eq(err.message + err.length - strlen(tail), tail, "%s", err.message);
    config_free(c);
}

Test(config, hides_control_characters)
{
    const char *message = errors_with("[network]\nname = \x1b[31mred\x07\n", NULL);
    for (const char *at = message; *at; at++)
        cr_expect((unsigned char)*at >= 0x20 || *at == '\n', "0x%02x", (unsigned)*at);
}

/* ---- variables and overrides ---- */

Test(config, replaces_variables_and_finds_places_through_them)
{
    struct config *c = parse_good("[vars]\na = one\nb = ${a}, two\n[layer l]\n"
                                  "inputs = x, ${b}, $$y\n");
    struct config_pair *p = pair(c, "layer", "l", "inputs");
    cr_expect_str_eq(p->value, "x, one, two, $y");
    expect_place("x", config_value_place(c, p, 0, 1), 5, 10, 1);
    expect_place("one", config_value_place(c, p, 3, 3), 5, 13, 4);
    expect_place("two", config_value_place(c, p, 8, 3), 5, 13, 4);
    expect_place("$y", config_value_place(c, p, 13, 2), 5, 19, 3);
    config_free(c);
}

Test(config, options_define_variables_and_win_over_the_file)
{
    static const char *const define[] = {"batch=4", "dir = ${batch}/w"};
    strata_network_options options = {
        .struct_size = sizeof options, .define = define, .n_define = 2};
    const char *text = "[vars]\nbatch = 1\n[network]\nname = n${batch}\n"
                       "labels = ${dir}.txt\n";
    strata_error err = {0};
    struct config *c = parse_with(text, strlen(text), &options);
    cr_assert_eq(config_finish(c, &err), STRATA_OK, "%s", err.message);
    cr_expect_str_eq(pair(c, "network", "", "name")->value, "n4");
    cr_expect_str_eq(pair(c, "network", "", "labels")->value, "4/w.txt");
    config_free(c);
}

Test(config, overrides_replace_add_and_make_sections)
{
    static const char *const set[] = {"layer a.b.pad=1",  " layer a.b . kernel = 3x3 ",
                                      "build.fusion=no",  "network.name=\"x y\"",
                                      "build.fusion=yes", "plugins.load=b.so"};
    strata_network_options options = {
        .struct_size = sizeof options, .set = set, .n_set = ARRAY_LENGTH(set)};
    const char *text = "[network]\nname = n\n[layer a.b]\npad = 0\n[plugins]\n"
                       "load = a.so\n";
    strata_error err = {0};
    struct config *c = parse_with(text, strlen(text), &options);
    cr_assert_eq(config_finish(c, &err), STRATA_OK, "%s", err.message);
    cr_expect_str_eq(pair(c, "layer", "a.b", "pad")->value, "1");
    cr_expect_eq(pair(c, "layer", "a.b", "pad")->value_place.file, -1);
    cr_expect_str_eq(pair(c, "layer", "a.b", "kernel")->value, "3x3");
    cr_expect_str_eq(pair(c, "network", "", "name")->value, "x y");
    cr_expect_not_null(config_find(c, "build"));
    cr_expect_str_eq(pair(c, "build", "", "fusion")->value, "yes", "the last one wins");
    cr_expect_eq(section(c, "plugins", "")->n_pairs, 2, "repeated keys add up");
    config_free(c);
}

Test(config, errors_in_options_show_the_option)
{
    static const struct {
        const char *set, *define, *message;
    } cases[] = {
        {"layer conv2.pad=1", NULL,
         "--set layer conv2.pad=1: error: no section [layer conv2]; did you mean [layer "
         "conv1]?\n    layer conv2.pad=1\n    ^~~~~~~~~~~"},
        {"pad=1", NULL, "--set pad=1: error: an override is 'section.key=value'"},
        {"layer conv1.pad", NULL, "--set layer conv1.pad: error: an override is"},
        {"layer conv1.pad=", NULL, "error: 'pad' has no value"},
        {"layer.pad=1", NULL, "error: [layer] needs a name"},
        {"bild.fusion=1", NULL, "error: unknown section [bild]; did you mean [build]?"},
        {"build.fu sion=1", NULL, "error: 'fu sion' is not a key"},
        {"vars.a=1", NULL, "error: [vars] cannot be overridden; use -D name=value"},
        {"include.file=a", NULL, "error: [include] cannot be overridden"},
        {"network.name=${v}", NULL, "error: undefined variable 'v'"},
        {"network.name=a\nb", NULL, "a line break in the option"},
        {"network.name=\"a", NULL, "error: the quote is not closed"},
        {"", NULL, "error: an override is"},
        {NULL, "v", "-D v: error: a definition is 'name=value'"},
        {NULL, "=1", "error: no key before '='"},
        {NULL, "9v=1", "error: '9v' is not a key"},
        {NULL, "v=1", "-D v=1: error: no file uses or declares a variable 'v'"},
        {NULL, "v=${u}", "error: undefined variable 'u'"},
        {NULL, "", "error: a definition is 'name=value'"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        strata_network_options options = {.struct_size = sizeof options,
                                          .set = &cases[i].set,
                                          .n_set = cases[i].set != NULL,
                                          .define = &cases[i].define,
                                          .n_define = cases[i].define != NULL};
        const char *message =
            errors_with("[network]\nname = n\n[layer conv1]\npad = 0\n", &options);
        cr_expect_not_null(strstr(message, cases[i].message), "case %zu: want '%s' in %s",
                           i, cases[i].message, message);
    }
}

/* ---- includes ---- */

Test(config, included_sections_come_where_the_include_stands)
{
    strata_error err = {0};
    struct config *c;
    char folder[512];
    snprintf(folder, sizeof folder, "%s/sub", scratch);
    cr_assert_eq(mkdir(folder, 0755), 0);
    spill("sub/inner.ini", "[layer c]\ntype = ${t}\n");
    spill("sub/b.ini", "[layer b]\ntype = B\n[include]\nfile = inner.ini\n");
    const char *path = spill("main.ini", "[vars]\nt = T\ndir = sub\n[layer a]\ntype = A\n"
                                         "[include]\nfile = ${dir}/b.ini\n"
                                         "[layer d]\ntype = D\n");
    cr_assert_eq(config_load(&c, path, NULL, &err), STRATA_OK, "%s", err.message);
    cr_assert_eq(config_finish(c, &err), STRATA_OK, "%s", err.message);
    char order[8] = "";
    for (size_t i = 0; i < config_sections(c); i++)
        if (!strcmp(config_section(c, i)->kind, "layer"))
            strcat(order, config_section(c, i)->name);
    cr_expect_str_eq(order, "abcd");
    struct config_pair *p = pair(c, "layer", "c", "type");
    cr_expect_str_eq(p->value, "T");
    cr_expect_not_null(strstr(config_file(c, p->value_place.file), "sub/inner.ini"));
    cr_expect_str_eq(config_file(c, -1), path);
    config_free(c);
}

Test(config, reports_a_first_file_that_cannot_be_read)
{
    char missing[512];
    snprintf(missing, sizeof missing, "%s/none.ini", scratch);
    const char *const paths[] = {missing, scratch, "/dev/null"};
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        strata_error err = {0};
        struct config *c;
        cr_expect_neq(config_load(&c, paths[i], NULL, &err), STRATA_OK);
        cr_expect_null(c);
        cr_expect_not_null(strstr(err.message, paths[i]), "%s", err.message);
    }
}

Test(config, text_in_memory_includes_nothing)
{
    cr_expect_not_null(strstr(errors_with("[include]\nfile = t.ini\n", NULL),
                              "text in memory cannot include files"));
}

/* ---- values ---- */

/* "[bench]\nv = TEXT" as a pair. */
static struct config *value_of(const char *text, struct config_pair **p)
{
    char file[6000];
    snprintf(file, sizeof file, "[profile]\nN = 7\n[bench]\nv = %s\n", text);
    struct config *c = parse_good(file);
    config_profile(c);
    *p = pair(c, "bench", "", "v");
    return c;
}

Test(config, reads_numbers)
{
    static const struct {
        const char *text;
        bool good;
        double value;
    } reals[] = {
        {"1", true, 1},          {"-0.5", true, -0.5},
        {".5", true, 0.5},       {"1e-5", true, 1e-5},
        {"+2.", true, 2},        {"0.00392156", true, 0.00392156},
        {"inf", true, INFINITY}, {"-inf", true, -INFINITY},
        {"1e", false, 0},        {"1e999", false, 0},
        {"nan", false, 0},       {"0x1p3", false, 0},
        {"1,5", false, 0},       {"1 2", false, 0},
        {".", false, 0},         {"infinity", false, 0},
        {"--1", false, 0},       {"\"\"", false, 0},
    };
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } integers[] = {
        {"0", true, 0},
        {"-7", true, -7},
        {"+7", true, 7},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"18446744073709551617", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"0x10", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"1 000", false, 0},
        {"N", false, 0},
    };
    struct config_pair *p;
    for (size_t i = 0; i < ARRAY_LENGTH(reals); i++) {
        double value = 42;
        struct config *c = value_of(reals[i].text, &p);
        bool good = config_real(c, p, -INFINITY, INFINITY, &value);
        cr_expect_eq(good, reals[i].good, "real %s", reals[i].text);
        cr_expect(value == (good ? reals[i].value : 42), "real %s", reals[i].text);
        cr_expect_eq(config_errors(c), !good);
        config_free(c);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(integers); i++) {
        int64_t value = 42;
        const char *text = integers[i].text[0] ? integers[i].text : "\"\"";
        struct config *c = value_of(text, &p);
        bool good = config_int(c, p, INT64_MIN, INT64_MAX, &value);
        cr_expect_eq(good, integers[i].good, "integer %s", text);
        cr_expect_eq(value, good ? integers[i].value : 42, "integer %s", text);
        cr_expect_eq(config_errors(c), !good);
        config_free(c);
    }
}

Test(config, reads_sizes_and_times)
{
    static const struct {
        const char *text;
        bool is_time, good;
        uint64_t value;
    } cases[] = {
        {"4096", false, true, 4096},
        {"64MiB", false, true, 64 * MIB},
        {"1 GB", false, true, 1000000000},
        {"1.5GiB", false, true, 1610612736},
        {"0.5 kB", false, true, 500},
        {"3B", false, true, 3},
        {"9007199254740993", false, true, 9007199254740993},
        {"8388608TiB", false, false, 0},
        {"1mib", false, false, 0},
        {"-1", false, false, 0},
        {"MiB", false, false, 0},
        {"500us", true, true, 500000},
        {"2 ms", true, true, 2000000},
        {"1.5s", true, true, 1500000000},
        {"7ns", true, true, 7},
        {"2min", true, true, 120000000000},
        {"5", true, false, 0},
        {"5 h", true, false, 0},
        {"-1s", true, false, 0},
    };
    struct config_pair *p;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        uint64_t value = 42;
        struct config *c = value_of(cases[i].text, &p);
        bool good = (cases[i].is_time ? config_time : config_size)(c, p, &value);
        cr_expect_eq(good, cases[i].good, "%s", cases[i].text);
        cr_expect_eq(value, good ? cases[i].value : 42, "%s: %llu", cases[i].text,
                     (unsigned long long)value);
        config_free(c);
    }
}

Test(config, reads_flags_and_choices)
{
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true"};
    struct config_pair *p;
    int index = -1;
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++) {
        bool flag = i % 2 == 0;
        struct config *c = value_of(words[i], &p);
        cr_expect(config_bool(c, p, &flag) && flag == (i % 2), "%s", words[i]);
        cr_expect(config_choice(c, p, "off|no|yes|true|on|false", &index));
        config_free(c);
    }
    struct config *c = value_of("max", &p);
    cr_expect(config_choice(c, p, "maximum|max", &index) && index == 1);
    cr_expect_not(config_choice(c, p, "maximum|ma|ax|maxx", &index));
    cr_expect_not(config_choice(c, p, "", &index));
    cr_expect_eq(index, 1);
    config_free(c);
}

Test(config, reads_lists_of_integers)
{
    static const struct {
        const char *text;
        size_t n; /* 0: refused */
        int64_t v[4];
    } cases[] = {
        {"3", 1, {3}},
        {"3x3", 2, {3, 3}},
        {"1 x 3 x 28 x 28", 4, {1, 3, 28, 28}},
        {"3, -3", 2, {3, -3}},
        {"1,2,3", 3, {1, 2, 3}},
        {"N x 2", 2, {7, 2}},
        {"2xN", 2, {2, 7}},
        {"N, N", 2, {7, 7}},
        {"3 3", 0, {0}},
        {"3x", 0, {0}},
        {"x3", 0, {0}},
        {"3xx3", 0, {0}},
        {"3 x 3, 3", 0, {0}},
        {"1,2,3,4,5", 0, {0}},
        {"1, 100", 0, {0}},
        {"M", 0, {0}},
        {"1;2", 0, {0}},
        {",", 0, {0}},
    };
    struct config_pair *p;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        int64_t v[4];
        size_t n = 0;
        struct config *c = value_of(cases[i].text, &p);
        bool good = config_ints(c, p, -9, 99, v, 4, &n);
        cr_expect_eq(good, cases[i].n > 0, "%s", cases[i].text);
        cr_expect_eq(n, cases[i].n, "%s", cases[i].text);
        cr_expect_eq(config_errors(c), !good);
        for (size_t k = 0; k < n; k++)
            cr_expect_eq(v[k], cases[i].v[k], "%s, item %zu", cases[i].text, k);
        config_free(c);
    }
}

Test(config, reads_lists_of_reals_and_words)
{
    struct config_pair *p;
    struct config_item *items;
    double v[3];
    size_t n;
    struct config *c = value_of("0.5, -1e2 ,3", &p);
    cr_assert(config_reals(c, p, v, 3, &n) && n == 3);
    cr_expect(v[0] == 0.5 && v[1] == -100 && v[2] == 3);
    cr_expect_not(config_reals(c, p, v, 2, &n));
    cr_assert(config_list(c, p, &items, &n) && n == 3);
    cr_expect_str_eq(items[1].text, "-1e2");
    cr_expect_eq(items[1].offset, 5);
    config_list_free(items, n);
    config_free(c);
    c = value_of("a,,b", &p);
    cr_expect_not(config_list(c, p, &items, &n));
    cr_expect_not(config_reals(c, p, v, 3, &n));
    cr_expect_eq(config_errors(c), 2);
    config_free(c);
}

/* ---- limits ---- */

/* `n` copies of a pattern in which %d is the index, after a head; exactly `size` bytes
 * when size > 0, the rest blank lines. */
static char *repeated(const char *head, const char *pattern, int n, size_t size)
{
    size_t room = size ? size + 1 : strlen(head) + (size_t)n * (strlen(pattern) + 8) + 1;
    char *text = malloc(room);
    size_t used = strlen(head);
    memcpy(text, head, used + 1);
    for (int i = 0; i < n; i++) {
        char line[5000];
        size_t length = (size_t)snprintf(line, sizeof line, pattern, i, i, i);
        if (used + length >= room)
            break;
        memcpy(text + used, line, length + 1);
        used += length;
    }
    for (; size && used < size; used++)
        text[used] = '\n';
    text[used] = '\0';
    return text;
}

Test(config, holds_its_limits_and_refuses_one_more)
{
    static const struct {
        const char *head, *pattern, *message;
        int limit;
    } cases[] = {
        {"", "[layer l%d]\n", "more than 65536 sections", CONFIG_MAX_SECTIONS},
        {"[bench]\n", "k%d = 1\n", "more than 256 keys in [bench]", CONFIG_MAX_KEYS},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char *text = repeated(cases[i].head, cases[i].pattern, cases[i].limit, 0);
        config_free(parse_good(text));
        free(text);
        text = repeated(cases[i].head, cases[i].pattern, cases[i].limit + 2, 0);
        const char *message = errors_with(text, NULL);
        cr_expect_not_null(strstr(message, cases[i].message), "%s", message);
        cr_expect_null(strstr(message, "more\n"), "told once: %s", message);
        free(text);
    }
}

Test(config, reads_sixteen_mebibytes_and_not_one_byte_more)
{
    strata_error err = {0};
    struct config *c;
    char *text = repeated("[bench]\n", "", 0, CONFIG_MAX_BYTES + 1);
    config_free(parse_with(text, CONFIG_MAX_BYTES, NULL));
    cr_expect_eq(config_parse(&c, text, CONFIG_MAX_BYTES + 1, "t.ini", NULL, &err),
                 STRATA_EPARSE);
    cr_expect_not_null(strstr(err.message, "16777217 bytes"), "%s", err.message);
    error_clear(&err);
    cr_expect_eq(config_load(&c, spill("big.ini", text), NULL, &err), STRATA_EPARSE);
    cr_expect_not_null(strstr(err.message, "16777217 bytes"), "%s", err.message);
    free(text);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SECONDS 20.0
#else
#define SECONDS 2.0
#endif

Test(config, judges_any_sixteen_mebibytes_within_two_seconds, .timeout = 300)
{
    static const struct {
        const char *name, *head, *pattern;
    } cases[] = {
        {"brackets", "", "["},
        {"blank lines", "", "\n"},
        {"equal signs", "[bench]\n", "=\n"},
        {"backslashes", "[bench]\n", "\\\n"},
        {"one key again", "[bench]\n", "k = 1\n"},
        {"unknown sections", "", "[a%d]\n"},
        {"one section again", "", "[bench]\n"},
        {"sections to the limit", "", "[layer l%d]\na=1\nb=2\nc=%d\n"},
        {"sections of many keys", "",
         "[layer l%d]\na=1\nb=1\nc=1\nd=1\ne=1\nf=1\ng=1\nh=1\ni=1\nj=1\nk=1\nl=1\nm=1\n"
         "n=1\no=1\np=1\nq=1\nr=1\ns=1\nt=1\nu=1\nv=1\nw=1\nx=1\ny=1\nz=1\naa=1\nbb=1\n"},
        {"lists", "", "[layer l%d]\ninputs = a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a\n"},
        {"undefined variables", "", "[layer l%d]\na = ${b}${c}\nd = ${e}\n"},
        {"quotes", "", "[layer l%d]\na = \"\"\"\n"},
        {"bytes above", "", "\xff\xff\xff\xff\n"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char *text =
            repeated(cases[i].head, cases[i].pattern, CONFIG_MAX_BYTES, CONFIG_MAX_BYTES);
        strata_error err = {0};
        clock_t start = clock();
        struct config *c = parse_with(text, CONFIG_MAX_BYTES, NULL);
        for (size_t k = 0; k < config_sections(c); k++)
            config_unknown(c, config_section(c, k), NULL, 0);
        config_finish(c, &err);
        config_free(c);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        cr_expect_lt(seconds, SECONDS, "%s: %.2f s", cases[i].name, seconds);
        free(text);
    }
}

Test(config, nested_variables_cannot_grow)
{
    char text[8192] = "[vars]\nv0 = aaaaaaaaaaaaaaaa\n";
    for (int i = 1; i < 60; i++)
        snprintf(text + strlen(text), 64, "v%d = ${v%d}${v%d}\n", i, i - 1, i - 1);
    const char *message = errors_with(text, NULL);
    cr_expect_not_null(strstr(message, "longer than 4096 bytes once variables"), "%s",
                       message);
}
