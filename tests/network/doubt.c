/* SPDX-License-Identifier: Apache-2.0
 *
 * What loads and is most likely not meant: which warnings come, and which do not; what
 * `strict` makes of them.
 */
#include "tests/network/network_text.h"

TestSuite(network_doubt, .init = network_start, .fini = network_stop, .timeout = 600);

static char warnings[8192];

static void keep_warning(void *user, int level, const char *text)
{
    (void)user, (void)level;
    size_t n = strlen(warnings);
    snprintf(warnings + n, sizeof warnings - n, "%s\n", text);
}

/* "NAME DTYPE DIMS": safetensors of zeros, as w.safetensors. */
struct entry {
    const char *name, *dtype, *dims;
    int bytes;
};
static const struct entry weight = {"fc.weight", "F32", "4,6", 96};
static const struct entry bias = {"fc.bias", "F32", "4", 16};
static const struct entry biass = {"fc.biass", "F32", "4", 16};
static const struct entry counter = {"fc.num_batches_tracked", "I64", "", 8};

static void spill_entries(const struct entry *const *entries)
{
    char bytes[4096] = {0}, *json = bytes + 8;
    size_t n = 0, data = 0;
    for (; *entries; entries++, data += (size_t)entries[-1]->bytes)
        n += (size_t)snprintf(json + n, sizeof bytes - 8 - n,
                              "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],"
                              "\"data_offsets\":[%zu,%zu]}",
                              n ? "," : "{", (*entries)->name, (*entries)->dtype,
                              (*entries)->dims, data, data + (size_t)(*entries)->bytes);
    json[n++] = '}';
    cr_assert(8 + n + data < sizeof bytes);
    memcpy(bytes, &(uint64_t){n}, 8);
    memset(json + n, 0, data);
    spill("w.safetensors", bytes, 8 + n + data);
}

#define AFFINE "[layer out]\ntype = Affine\nunits = 4\n"
#define BY_PREFIX AFFINE "weights = w:fc\n"
#define MOST 6

static const struct doubt_case {
    const char *layers;
    const struct entry *tensors[MOST];
    const char *told; /* NULL: nothing */
} cases[] = {
    {BY_PREFIX, {&weight, &bias}, NULL},
    {BY_PREFIX, {&weight}, NULL},
    {BY_PREFIX, {&weight, &bias, &counter}, NULL},
    {BY_PREFIX,
     {&weight, &biass},
     "net.ini:11: nothing reads tensor 'fc.biass' of [weights w], and layer out has no "
     "bias; did you mean 'fc.bias'?\n"},
    {BY_PREFIX "bias = none\n", {&weight, &bias}, NULL},
    {BY_PREFIX "bias = zeros\n", {&weight, &bias, &counter}, NULL},
    {BY_PREFIX,
     {&weight, &bias, &biass},
     "net.ini:6: [weights w]: nothing reads these, beside tensors that layers read: "
     "'fc.biass'\n"},
    {BY_PREFIX,
     {&weight, &bias, &(struct entry){"fc.mean", "F32", "1", 4},
      &(struct entry){"fc.a", "F32", "1", 4}, &(struct entry){"gc.a", "F32", "1", 4}},
     "net.ini:6: [weights w]: nothing reads these, beside tensors that layers read: "
     "'fc.mean', 'fc.a'\n"},
    {BY_PREFIX, {&weight, &(struct entry){"fc.deep.bias", "F32", "4", 16}}, NULL},
    {AFFINE "weight = w:fc.weight\n",
     {&weight, &bias},
     "net.ini:8: nothing reads tensor 'fc.bias' of [weights w], and layer out has no "
     "bias; write 'bias = w:fc.bias', or 'bias = none'\n"},
    {AFFINE "weight = w:fc.weight\n[layer b]\ntype = Affine\nunits = 4\ninputs = x\n"
            "weights = w:fc\n[layer c]\ntype = Join\ninputs = out, b\n",
     {&weight, &bias},
     "nothing reads 'c', and it is no output\n"},
    {BY_PREFIX "[layer s]\ntype = Split\nparts = 2\n[layer t]\ntype = Pass\n"
               "inputs = s:1\n[layer u]\ntype = Join\ninputs = t, out\n",
     {&weight, &bias},
     "net.ini: nothing reads 'u', and it is no output\n"},
    {AFFINE "weights = w\n",
     {&(struct entry){"weight", "F32", "4,6", 96},
      &(struct entry){"biass", "F32", "4", 16}},
     "nothing reads tensor 'biass' of [weights w], and layer out has no bias; did you "
     "mean 'bias'?\n"},
    {BY_PREFIX,
     {&weight, &(struct entry){"fc.bias", "I64", "4", 32}},
     "net.ini:6: [weights w]: integers where layers take floats: 'fc.bias' (I64)\n"},
    {"[layer out]\ntype = Source\nvalue = w:i\n",
     {&(struct entry){"i", "I32", "3", 12}},
     "nothing reads 'x', and it is no output\n"},
};

static void write_case(char *text, size_t size, const struct doubt_case *c, bool strict)
{
    spill_entries(c->tensors);
    snprintf(text, size, HEAD "[weights w]\nfile = w.safetensors%s\n%s",
             strict ? "\nstrict = yes" : "", c->layers);
}

Test(network_doubt, what_is_likely_a_mistake_is_told_and_nothing_else)
{
    char text[1024];
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const struct doubt_case *c = &cases[i];
        write_case(text, sizeof text, c, false);
        warnings[0] = '\0';
        strata_set_logger(keep_warning, NULL, STRATA_LOG_WARNING);
        strata_network_destroy(load(text));
        strata_set_logger(NULL, NULL, STRATA_LOG_ERROR);
        const char *at = c->told ? strstr(warnings, c->told) : NULL;
        cr_expect(c->told ? at && at[strlen(c->told)] == '\0' : !*warnings,
                  "case %zu told:\n%s", i, warnings);
    }
}

Test(network_doubt, strict_makes_errors_of_it)
{
    char text[1024];
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const struct doubt_case *c = &cases[i];
        strata_network *net = NULL;
        strata_error err = {0};
        bool fails = c->told && strstr(c->told, "[weights w]");
        write_case(text, sizeof text, c, true);
        int status = strata_network_load(&net, spill("net.ini", text, strlen(text)),
                                         registry, NULL, &err);
        cr_expect_eq(status, fails ? STRATA_EPARSE : STRATA_OK, "case %zu: %s", i,
                     err.message);
        cr_expect(!fails || strstr(err.message, ": error: "), "%s", err.message);
        strata_network_destroy(net);
    }
}

Test(network_doubt, labels_that_are_not_as_many_as_the_classes)
{
    static const struct {
        const char *labels;
        bool told;
    } files[] = {{"a\nb\nc\nd\n", false},
                 {"a\nb\nc\nd\n\n\n", false},
                 {"a\nb\nc\n", true},
                 {"a\nb\nc\nd\ne\n", true}};
    char text[512];
    snprintf(text, sizeof text,
             "%s[weights r]\nrandom = 1\n[layer out]\ntype = Affine\n"
             "units = 4\nweights = r\n",
             "[network]\nformat = 1\nlabels = l.txt\noutputs = out\n"
             "[input x]\nshape = 2 x 6\n");
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        spill("l.txt", files[i].labels, strlen(files[i].labels));
        warnings[0] = '\0';
        strata_set_logger(keep_warning, NULL, STRATA_LOG_WARNING);
        strata_network_destroy(load(text));
        strata_set_logger(NULL, NULL, STRATA_LOG_ERROR);
        cr_expect(files[i].told
                      ? strstr(warnings, "labels for the 4 classes of 'out'") != NULL
                      : !*warnings,
                  "%s", warnings);
    }
}
