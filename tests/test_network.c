/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading networks: every malformed file of tests/data/bad-ini, then what a good file
 * gives: attributes, graph, shapes, weights, options. Layers come from
 * tests/plugins/test_layers.c, compiled here.
 */
#include <dirent.h>
#include <time.h>

#include "core/network.h"

#include "tests/broken/folders.h"

static strata_registry *registry;

static void start(void)
{
    folders_start();
    const char *file = build("layers.so", "plugins/test_layers.c", SHARED);
    strata_registry_options options = {.struct_size = sizeof options,
                                       .files = &file,
                                       .n_files = 1,
                                       .no_default_path = 1};
    strata_error err = {0};
    cr_assert_eq(strata_registry_create(&registry, &options, &err), STRATA_OK, "%s",
                 err.message);
}

static void stop(void)
{
    strata_registry_destroy(registry);
    scratch_remove();
}

TestSuite(network, .init = start, .fini = stop, .timeout = 120);

#define HEAD "[network]\nformat = 1\noutputs = out\n[input x]\nshape = 2 x 6\n"
#define FILE_WEIGHTS "[weights w]\nfile = w.safetensors\n"

/* ---- files for tests ---- */

/* w.safetensors in the scratch folder: fc.weight (4, 6) = 0, 1, ...; fc.bias (4); half
 * (4, 6, 1, 1) FP16 of 1.5; ints (3) I32; part.shift (2). */
static void spill_weights(void)
{
    static const char header[] =
        "{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[4,6],\"data_offsets\":[0,96]},"
        "\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[96,112]},"
        "\"half\":{\"dtype\":\"F16\",\"shape\":[4,6,1,1],\"data_offsets\":[112,160]},"
        "\"ints\":{\"dtype\":\"I32\",\"shape\":[3],\"data_offsets\":[160,172]},"
        "\"part.shift\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[172,180]}} ";
    unsigned char bytes[1024];
    uint64_t n = sizeof header - 1;
    size_t at = 8 + (size_t)n;
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, n);
    for (int i = 0; i < 28; i++, at += 4)
        memcpy(bytes + at, &(float){(float)(i < 24 ? i : 100 + i - 24)}, 4);
    for (int i = 0; i < 24; i++, at += 2)
        memcpy(bytes + at, &(uint16_t){0x3e00}, 2);
    for (int32_t i = 0; i < 3; i++, at += 4)
        memcpy(bytes + at, &(int32_t){-i}, 4);
    memset(bytes + at, 0, 8), at += 8;
    spill("w.safetensors", bytes, at);
}

static strata_network *load_with(const char *text, const strata_network_options *options)
{
    strata_network *net;
    strata_error err = {0};
    const char *path = spill("net.ini", text, strlen(text));
    cr_assert_eq(strata_network_load(&net, path, registry, options, &err), STRATA_OK,
                 "%s", err.message);
    return net;
}

static strata_network *load(const char *text)
{
    return load_with(text, NULL);
}

/* The message of a text that is refused; static. */
static const char *refused(const char *text)
{
    static strata_error err;
    strata_network *net;
    memset(&err, 0, sizeof err);
    const char *path = spill("net.ini", text, strlen(text));
    cr_expect_neq(strata_network_load(&net, path, registry, NULL, &err), STRATA_OK);
    cr_expect_null(net);
    return err.message;
}

static const struct network_layer *layer(const strata_network *net, const char *name)
{
    for (size_t i = 0; i < net->n_layers; i++)
        if (!strcmp(net->layers[i].name, name))
            return &net->layers[i];
    cr_assert_fail("no layer %s", name);
    return NULL;
}

static const struct network_tensor *tensor(const strata_network *net, const char *name)
{
    for (size_t i = 0; i < net->n_tensors; i++)
        if (!strcmp(net->tensors[i].name, name))
            return &net->tensors[i];
    cr_assert_fail("no tensor %s", name);
    return NULL;
}

static void expect_dims(const strata_network *net, const char *name, int rank,
                        const int64_t *dims)
{
    const struct network_tensor *t = tensor(net, name);
    cr_assert_eq(t->rank, rank, "%s has rank %d", name, t->rank);
    for (int d = 0; d < rank; d++)
        cr_expect_eq(t->dims[d], dims[d], "%s, dim %d: %lld", name, d,
                     (long long)t->dims[d]);
}

/* ---- malformed files ---- */

/* "; EXPECTED" in the first line. FILE stands for the path, and an expectation that
 * starts with a place is one in this file. */
static void expected_text(const char *path, const char *first, char *out, size_t size)
{
    const char *file = strstr(first, "FILE");
    if (first[0] >= '0' && first[0] <= '9')
        snprintf(out, size, "%s:%s", path, first);
    else if (file)
        snprintf(out, size, "%.*s%s%s", (int)(file - first), first, path, file + 4);
    else
        snprintf(out, size, "%s", first);
}

static void check_malformed(const char *folder, const char *name)
{
    char path[1024], first[512] = "", want[2048];
    strata_error err = {0};
    strata_network *net;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    cr_assert(fgets(first, sizeof first, f) && !strncmp(first, "; ", 2),
              "%s does not say what it expects", name);
    fclose(f);
    first[strcspn(first, "\n")] = '\0';
    expected_text(path, first + 2, want, sizeof want);
    cr_expect_neq(strata_network_load(&net, path, registry, NULL, &err), STRATA_OK,
                  "%s is accepted", name);
    cr_expect_null(net);
    cr_expect_not_null(strstr(err.message, want), "%s: want\n%s\ngot\n%s", name, want,
                       err.message);
    cr_expect_eq(strlen(err.message), err.length);
}

Test(network, every_malformed_file_is_refused_with_place_and_reason)
{
    char folder[512];
    struct dirent *entry;
    int n = 0;
    snprintf(folder, sizeof folder, "%s/tests/data/bad-ini", env_or("srcdir", "."));
    DIR *dir = opendir(folder);
    cr_assert_not_null(dir, "%s", folder);
    while ((entry = readdir(dir))) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".ini"))
            continue;
        check_malformed(folder, entry->d_name);
        n++;
    }
    closedir(dir);
    cr_expect_geq(n, 200, "%d files", n);
}

Test(network, errors_of_all_steps_before_the_graph_come_together)
{
    const char *message = refused("[network]\nformat = 2\noutputs = a, b\n[input x]\n"
                                  "shape = 0\nno pair\n[layer a]\ntype = Split\n"
                                  "parts = x\n[layer b]\ntype = Nothing\n"
                                  "inputs = c\n[build]\nfusion = 7\n");
    static const char *const lines[] = {
        ":2:10:", ":5:9:", ":6:1:", ":9:9:", ":11:8:", ":12:10:", ":14:10:"};
    for (size_t i = 0; i < ARRAY_LENGTH(lines); i++)
        cr_expect_not_null(strstr(message, lines[i]), "%s is not told in %s", lines[i],
                           message);
    cr_expect_null(strstr(message, ":3:"), "outputs name layers: %s", message);
}

/* ---- attributes ---- */

struct affine { /* as in tests/plugins/test_layers.c */
    int64_t units;
    double gain;
    int32_t flag, mode;
    strata_string label;
    strata_ints steps;
    strata_reals taps;
    int64_t any;
};

Test(network, attributes_take_their_defaults)
{
    strata_network *net = load(HEAD "[layer out]\ntype = Affine\nunits = 4\n"
                                    "weight = zeros\n");
    const struct affine *p = layer(net, "out")->params;
    cr_expect(p->units == 4 && p->gain == 1.5 && p->flag == 1 && p->mode == 1);
    cr_expect_str_eq(p->label.text, "plain");
    cr_expect_eq(p->label.length, 5);
    cr_expect(p->steps.n == 2 && p->steps.v[0] == 1 && p->steps.v[1] == 2);
    cr_expect(p->taps.n == 2 && p->taps.v[0] == 0.5 && p->taps.v[1] == 0.25);
    cr_expect_eq(p->any, -7);
    strata_network_destroy(net);
}

Test(network, attributes_take_the_file_s_values)
{
    strata_network *net = load(
        "[profile]\nN = 3\n" HEAD
        "[layer out]\ntype = test::Affine@1\nunits = 4096\nweight = zeros\ngain = 0.25\n"
        "flag = off\nmode = mul\nlabel = \"a, b\"\nsteps = 9 x N x 1\n"
        "taps = -1, 1e-3, .5, 1\nany = -9223372036854775808\n");
    const struct affine *p = layer(net, "out")->params;
    cr_expect(p->units == 4096 && p->gain == 0.25 && p->flag == 0 && p->mode == 2);
    cr_expect_str_eq(p->label.text, "a, b");
    cr_expect(p->steps.n == 3 && p->steps.v[0] == 9 && p->steps.v[1] == 3);
    cr_expect(p->taps.n == 4 && p->taps.v[0] == -1 && p->taps.v[1] == 1e-3);
    cr_expect_eq(p->any, INT64_MIN);
    strata_network_destroy(net);
    net = load(HEAD "[layer out]\ntype = Affine\nunits = 1\nweight = zeros\n"
                    "label = \"\"\nsteps = \"\"\ntaps = \"\"\n");
    p = layer(net, "out")->params;
    cr_expect(p->label.length == 0 && p->steps.n == 0 && p->taps.n == 0);
    strata_network_destroy(net);
}

/* ---- graph ---- */

static void expect_order(const char *text, const char *order)
{
    char found[64] = "";
    strata_network *net = load(text);
    for (size_t i = 0; i < net->n_layers; i++) {
        strcat(found, net->layers[i].name);
        for (int k = 0; k < net->layers[i].n_inputs; k++)
            cr_expect_lt(net->tensors[net->layers[i].inputs[k]].producer, (int)i);
        for (int k = 0; k < net->layers[i].n_outputs; k++) {
            const struct network_tensor *t = &net->tensors[net->layers[i].outputs[k]];
            cr_expect(t->producer == (int)i && t->port == k, "%s", t->name);
        }
    }
    cr_expect_str_eq(found, order);
    strata_network_destroy(net);
}

Test(network, producers_come_first_and_the_file_s_order_stays_where_it_can)
{
#define NET "[network]\nformat = 1\noutputs = a\n[input x]\nshape = 2 x 6\n"
    expect_order(NET "[layer c]\ntype = Pass\n[layer a]\ntype = Pass\n[layer b]\n"
                     "type = Pass\n",
                 "cab");
    expect_order(NET "[layer a]\ntype = Join\ninputs = b, c\n[layer b]\ntype = Pass\n"
                     "inputs = x\n[layer c]\ntype = Pass\n",
                 "bca");
    expect_order(NET "[layer b]\ntype = Pass\ninputs = x\n[layer c]\ntype = Pass\n"
                     "inputs = x\n[layer a]\ntype = Join\ninputs = c, b, c\n",
                 "bca");
    expect_order(NET "[layer a]\ntype = Pass\ninputs = d\n[layer b]\ntype = Pass\n"
                     "inputs = x\n[layer d]\ntype = Pass\ninputs = b\n",
                 "bda");
}

Test(network, tensors_are_named_by_layer_and_port)
{
    strata_network *net = load("[network]\nformat = 1\noutputs = s:1, s, out\n"
                               "output_formats = fp16:nchw\n[input x]\nshape = 2 x 6\n"
                               "[layer s]\ntype = Split\nparts = 3\n"
                               "[layer out]\ntype = Join\ninputs = s:2, s:0, x\n"
                               "format = fp32:nchw, fp16:nhwc8\nimpl = copy\n");
    const struct network_layer *out = layer(net, "out");
    expect_dims(net, "s", 2, (int64_t[]){2, 2});
    expect_dims(net, "s:2", 2, (int64_t[]){2, 2});
    expect_dims(net, "out", 2, (int64_t[]){2, 10});
    cr_expect_str_eq(net->tensors[out->inputs[0]].name, "s:2");
    cr_expect_str_eq(net->tensors[out->inputs[1]].name, "s");
    cr_expect_str_eq(net->tensors[out->inputs[2]].name, "x");
    cr_expect_eq(out->formats, STRATA_F32_NCHW | STRATA_F16_NHWC8);
    cr_expect_eq(tensor(net, "out")->formats, out->formats);
    cr_expect_eq(tensor(net, "s")->formats, 0);
    cr_expect_str_eq(out->impl, "copy");
    cr_assert_eq(net->n_outputs, 3);
    cr_expect_str_eq(net->outputs[0].name, "s:1");
    cr_expect_str_eq(net->outputs[1].name, "s");
    cr_expect_eq(net->outputs[2].tensor, out->outputs[0]);
    cr_expect_eq(net->outputs[2].format.dtype, STRATA_FP16);
    strata_network_destroy(net);
}

/* A chain of n layers, written first to last or last to first. */
static char *chain(int n, bool reversed)
{
    char *text = malloc(128 + (size_t)n * 64), *at = text;
    at += sprintf(at, "[network]\nformat = 1\noutputs = l%d\n[input x]\nshape = 1\n",
                  n - 1);
    for (int k = 0; k < n; k++) {
        int i = reversed ? n - 1 - k : k;
        at += sprintf(at, "[layer l%d]\ntype = Pass\n", i);
        at += i ? sprintf(at, "inputs = l%d\n", i - 1) : sprintf(at, "inputs = x\n");
    }
    return text;
}

Test(network, deep_chains_load_in_either_order)
{
    for (int reversed = 0; reversed < 2; reversed++) {
        char *text = chain(65000, reversed);
        clock_t begin = clock();
        strata_network *net = load(text);
        cr_assert_eq(net->n_layers, 65000);
        cr_expect_str_eq(net->layers[0].name, "l0");
        cr_expect_str_eq(net->layers[64999].name, "l64999");
        strata_network_destroy(net);
        cr_log_info("%s: %.2f s", reversed ? "reversed" : "forward",
                    (double)(clock() - begin) / CLOCKS_PER_SEC);
        free(text);
    }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SECONDS 20.0
#else
#define SECONDS 2.0
#endif

/* 16 MiB of a pattern in which %d is the index, blank lines at the end. */
static char *repeated(const char *head, const char *pattern)
{
    char *text = malloc(CONFIG_MAX_BYTES + 1), line[512];
    size_t used = strlen(head);
    memcpy(text, head, used);
    for (int i = 0; i < CONFIG_MAX_SECTIONS - 4; i++) {
        size_t n = (size_t)snprintf(line, sizeof line, pattern, i, i);
        if (used + n > CONFIG_MAX_BYTES)
            break;
        memcpy(text + used, line, n);
        used += n;
    }
    memset(text + used, '\n', CONFIG_MAX_BYTES - used);
    text[CONFIG_MAX_BYTES] = '\0';
    return text;
}

Test(network, judges_any_sixteen_mebibytes_within_two_seconds, .timeout = 300)
{
    static const char *const patterns[] = {
        "[layer l%d]\ntype = Type%d\n",
        "[layer l%d]\ntype = Pass\ninputs = l%dx\n",
        "[layer l%d]\ntype = Affine\nunits = 4\nweights = w:p%d\n",
        "[layer l%d]\ntype = Affine\nunits = 4\nweight = w:fc.weight\nbias = w:b%d\n",
        "[layer l%d]\ntype = Affine\nunits = x\nmode = %d\nsteps = a\ntaps = 2\n",
        "[layer l%d]\ntype = Pass\nimpl = i%d\nformat = fp16:x\nbogus = 1\n",
        "[layer l%d]\ntype = Join\ninputs = x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x%d\n",
        "[layer l%d]\ntype = Pass\ninputs = x\n; %d\n",
        "[input i%d]\nshape = 1 x %d\nmean = 1, 2, 3\n",
        "[weights w%d]\nfile = none%d\n",
        "[weights w%d]\nrandom = %d\n",
    };
    spill_weights();
    for (size_t i = 0; i < ARRAY_LENGTH(patterns); i++) {
        char *text = repeated(HEAD FILE_WEIGHTS, patterns[i]);
        const char *path = spill("net.ini", text, CONFIG_MAX_BYTES);
        strata_error err = {0};
        strata_network *net;
        clock_t begin = clock();
        cr_expect_eq(strata_network_load(&net, path, registry, NULL, &err),
                     STRATA_EPARSE);
        double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        cr_expect_lt(seconds, SECONDS, "%s: %.2f s", patterns[i], seconds);
        free(text);
    }
}

Test(network, a_layer_takes_1024_inputs_and_not_1025)
{
    for (int n = 1024; n <= 1025; n++) {
        char *text = malloc(16384), *at = text;
        at += sprintf(at, "%s[layer out]\ntype = Join\ninputs = x", HEAD);
        for (int i = 1; i < n; i++)
            at += sprintf(at, ",%sx", i % 64 ? "" : "\\\n");
        sprintf(at, "\n");
        if (n == 1024) {
            strata_network *net = load(text);
            expect_dims(net, "out", 2, (int64_t[]){2, 6144});
            strata_network_destroy(net);
        } else {
            const char *message = refused(text);
            cr_expect_not_null(strstr(message, "1025 inputs; at most 1024"), "%s",
                               message);
        }
        free(text);
    }
}

/* ---- weights ---- */

static void expect_values(const struct network_weight *w, int n, const float *want)
{
    float values[32];
    strata_error err = {0};
    cr_assert_eq(w->dtype, STRATA_FP32);
    cr_assert_eq(network_weight_load(w, values, &err), STRATA_OK, "%s", err.message);
    for (int i = 0; i < n; i++)
        cr_expect_eq(values[i], want[i], "%s[%d] = %g", w->name, i, values[i]);
}

Test(network, weights_come_by_prefix_and_by_key)
{
    spill_weights();
    strata_network *net =
        load(HEAD FILE_WEIGHTS
             "[layer a]\ntype = Affine\nunits = 4\nweights = w:fc\n"
             "[layer b]\ntype = Affine\nunits = 4\ninputs = x\nweights = w:fc\n"
             "bias = none\n"
             "[layer c]\ntype = Affine\nunits = 4\ninputs = x\nweight = w:half\n"
             "bias = zeros\n"
             "[layer ints]\ntype = Source\nvalue = w:ints\n"
             "[layer out]\ntype = Join\ninputs = a, b, c\n");
    const struct network_layer *a = layer(net, "a"), *b = layer(net, "b"),
                               *c = layer(net, "c"), *ints = layer(net, "ints");
    cr_expect_eq(a->weights[0].source, WEIGHT_FILE);
    cr_expect_str_eq(a->weights[1].name, "a.bias");
    expect_values(&a->weights[0], 3, (float[]){0, 1, 2});
    expect_values(&a->weights[1], 4, (float[]){100, 101, 102, 103});
    cr_expect_eq(b->weights[0].source, WEIGHT_FILE);
    cr_expect_eq(b->weights[1].source, WEIGHT_ABSENT);
    cr_expect_eq(network_weight_load(&b->weights[1], NULL, NULL), STRATA_EINVAL);
    /* (4, 6, 1, 1) is (4, 6) to a layer that wants that, and FP16 stays FP16 */
    cr_expect(c->weights[0].rank == 2 && c->weights[0].dtype == STRATA_FP16);
    uint16_t halves[24];
    cr_expect_eq(network_weight_load(&c->weights[0], halves, NULL), STRATA_OK);
    cr_expect(halves[0] == 0x3e00 && halves[23] == 0x3e00);
    expect_values(&c->weights[1], 4, (float[]){0, 0, 0, 0});
    cr_expect_eq(tensor(net, "ints")->dtype, STRATA_INT32);
    int32_t integers[3];
    cr_expect_eq(network_weight_load(&ints->weights[0], integers, NULL), STRATA_OK);
    cr_expect(integers[0] == 0 && integers[2] == -2);
    strata_network_destroy(net);
}

Test(network, one_name_may_be_an_attribute_and_a_weight)
{
    static const struct {
        const char *keys;
        double attribute;
        enum weight_source source;
    } cases[] = {
        {"", 0.5, WEIGHT_ABSENT},
        {"shift = 2.5\n", 2.5, WEIGHT_ABSENT},
        {"shift = w:fc.bias\n", 0.5, WEIGHT_FILE},
        {"shift = none\n", 0.5, WEIGHT_ABSENT},
        {"shift = 2.5\nweights = w:part\n", 2.5, WEIGHT_FILE},
        {"weights = w:part\n", 0.5, WEIGHT_FILE},
    };
    spill_weights();
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s[layer out]\ntype = Shift\n%s", HEAD,
                 FILE_WEIGHTS, cases[i].keys);
        strata_network *net = load(text);
        const struct network_layer *out = layer(net, "out");
        cr_expect_eq(*(const double *)out->params, cases[i].attribute, "%s",
                     cases[i].keys);
        cr_expect_eq(out->weights[0].source, cases[i].source, "%s", cases[i].keys);
        strata_network_destroy(net);
    }
}

Test(network, random_weights_follow_the_seed_and_the_name)
{
    float v[4][24];
    static const char *const seeds[] = {"7", "7", "8"};
    char text[512];
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text,
                 HEAD "[weights r]\nrandom = %s\n[layer out]\ntype = Affine\n"
                      "units = 4\nweights = r\n[layer o2]\ntype = Affine\nunits = 4\n"
                      "inputs = x\nweight = r:any\nbias = r\n",
                 seeds[i]);
        strata_network *net = load(text);
        const struct network_layer *out = layer(net, "out"), *o2 = layer(net, "o2");
        cr_expect_eq(out->weights[0].source, WEIGHT_RANDOM);
        cr_expect_eq(out->weights[1].source, WEIGHT_ABSENT, "optional ones are left");
        cr_expect_eq(o2->weights[1].source, WEIGHT_RANDOM, "unless asked for");
        cr_expect_eq(network_weight_load(&out->weights[0], v[i], NULL), STRATA_OK);
        cr_expect_eq(network_weight_load(&o2->weights[0], v[3], NULL), STRATA_OK);
        strata_network_destroy(net);
    }
    cr_expect_eq(memcmp(v[0], v[1], sizeof v[0]), 0);
    cr_expect_neq(memcmp(v[0], v[2], sizeof v[0]), 0);
    cr_expect_neq(memcmp(v[2], v[3], sizeof v[0]), 0);
    double sum = 0;
    for (int i = 0; i < 24; i++)
        sum += (double)v[0][i] * (double)v[0][i];
    /* He: variance 2/6 */
    cr_expect(sum / 24 > 0.1 && sum / 24 < 1.0, "variance %g", sum / 24);
}

Test(network, weights_stay_in_the_folder_unless_allowed)
{
    char text[1024], path[300];
    spill_weights();
    cr_assert_eq(mkdir(in_scratch("sub"), 0755), 0);
    snprintf(path, sizeof path, "%s", in_scratch("sub/net.ini"));
    for (int anywhere = 0; anywhere < 2; anywhere++) {
        strata_network *net;
        strata_error err = {0};
        snprintf(text, sizeof text,
                 HEAD "[weights w]\nfile = ../w.safetensors\nanywhere = %s\n"
                      "[layer out]\ntype = Affine\nunits = 4\nweights = w:fc\n",
                 anywhere ? "yes" : "no");
        spill("sub/net.ini", text, strlen(text));
        int status = strata_network_load(&net, path, registry, NULL, &err);
        cr_expect_eq(status, anywhere ? STRATA_OK : STRATA_EPARSE, "%s", err.message);
        if (!anywhere)
            cr_expect_not_null(strstr(err.message, ":7:8: error: "), "%s", err.message);
        strata_network_destroy(net);
    }
}

/* ---- inputs and options ---- */

Test(network, inputs_have_shapes_formats_and_transforms)
{
    strata_network *net =
        load("[profile]\nN = 2\n[network]\nformat = 1\noutputs = out\n"
             "[input image]\nshape = N x 3 x 8 x 9\nformat = u8:nhwc\nchannels = bgr\n"
             "resize = letterbox\nfill = 114\nscale = 0.00392156\nmean = 0.5, 0.25, 0\n"
             "std = 2\n[input mask]\nshape = 2 x 1 x 8 x 9\n"
             "[input ids]\nshape = 5\ndtype = i32\n"
             "[layer out]\ntype = Join\ninputs = image, mask\n");
    const struct network_input *image = network_find_input(net, "image");
    cr_assert_not_null(image);
    cr_expect_null(network_find_input(net, "out"));
    cr_expect_eq(image->format.dtype, STRATA_UINT8);
    cr_expect_eq(image->format.order, ORDER_LAST);
    cr_expect_eq(tensor(net, "image")->dtype, STRATA_FP32);
    expect_dims(net, "image", 4, (int64_t[]){2, 3, 8, 9});
    const struct image_transform *t = &image->transform;
    cr_expect(t->channels == IMAGE_BGR && t->resize == IMAGE_LETTERBOX && t->fill == 114);
    cr_expect(t->scale == 0.00392156 && t->mean[1] == 0.25 && t->mean[2] == 0);
    cr_expect(t->std[0] == 2 && t->std[2] == 2);
    const struct network_input *mask = network_find_input(net, "mask");
    cr_expect(mask->transform.channels == IMAGE_GRAY && mask->transform.scale == 1 &&
              mask->transform.mean[0] == 0 && mask->transform.std[0] == 1);
    cr_expect_eq(network_find_input(net, "ids")->format.dtype, STRATA_INT32);
    cr_expect_eq(tensor(net, "ids")->dtype, STRATA_INT32);
    expect_dims(net, "out", 4, (int64_t[]){2, 4, 8, 9});
    strata_network_destroy(net);
}

Test(network, options_of_the_file_are_kept)
{
    spill("classes.txt", "cat\ndog\r\n\nlast", 14);
    strata_network *net = load(
        HEAD "[layer out]\ntype = Pass\n"
             "[build]\nprecision = fp16\nformats = fp16:nhwc8, fp16:nchw\nfusion = no\n"
             "no_reformat = yes\ndeterministic = on\nworkspace = 64MiB\n"
             "math = tensor_op\n"
             "[runtime]\ndevice = cuda:1\nthreads = 2\ngraph = no\n"
             "[bench]\nwarmup = 10ms\nduration = 1.5s\niterations = 7\n");
    cr_expect_str_eq(net->name, "net");
    cr_expect_eq(net->build.precision, PRECISION_FP16);
    cr_expect_eq(net->build.formats, STRATA_F16_NHWC8 | STRATA_F16_NCHW);
    cr_expect(!net->build.fusion && net->build.no_reformat && net->build.deterministic);
    cr_expect_eq(net->build.workspace, 64u << 20);
    cr_expect_str_eq(net->runtime.device, "cuda:1");
    cr_expect_eq(net->build.math, STRATA_MATH_TENSOR_OP);
    cr_expect_eq(net->runtime.threads, 2);
    cr_expect_not(net->runtime.graph);
    cr_expect(net->bench.warmup == 10000000 && net->bench.duration == 1500000000 &&
              net->bench.iterations == 7);
    strata_network_destroy(net);
    net = load("[network]\nformat = 1\noutputs = out\nname = \"A net\"\n"
               "labels = classes.txt\n[input x]\nshape = 1\n[layer out]\ntype = Pass\n");
    cr_expect_str_eq(net->name, "A net");
    cr_assert_eq(net->n_labels, 4);
    cr_expect_str_eq(net->labels[1], "dog");
    cr_expect_str_eq(net->labels[2], "");
    cr_expect_str_eq(net->labels[3], "last");
    cr_expect(net->build.fusion && !net->build.no_reformat && net->build.formats == 0);
    cr_expect_str_eq(net->runtime.device, "auto");
    strata_network_destroy(net);
}

Test(network, options_of_the_call_reach_every_step)
{
    static const char *const set[] = {"layer s.parts=2", "input x.shape=${n} x 8",
                                      "build.precision=any"};
    static const char *const bad[] = {"layer s.parts=x"};
    static const char *const define[] = {"n=5"};
    strata_network_options options = {.struct_size = sizeof options,
                                      .set = set,
                                      .n_set = 3,
                                      .define = define,
                                      .n_define = 1};
    const char *text = "[network]\nformat = 1\noutputs = s:1\n[input x]\nshape = 1 x 6\n"
                       "[layer s]\ntype = Split\nparts = 3\n";
    strata_network *net = load_with(text, &options);
    expect_dims(net, "s:1", 2, (int64_t[]){5, 4});
    cr_expect_eq(net->build.precision, PRECISION_ANY);
    strata_network_destroy(net);
    strata_error err = {0};
    options =
        (strata_network_options){.struct_size = sizeof options, .set = bad, .n_set = 1};
    const char *path = spill("net.ini", text, strlen(text));
    cr_expect_eq(strata_network_load(&net, path, registry, &options, &err),
                 STRATA_EPARSE);
    cr_expect_not_null(strstr(err.message, "--set layer s.parts=x: error: 'x' is not an "
                                           "integer\n    layer s.parts=x\n"
                                           "                  ^\n"
                                           "    parts: number of outputs (0 to 100000)"),
                       "%s", err.message);
}

Test(network, plugins_come_from_the_file_s_folder)
{
    strata_registry *empty;
    strata_registry_options options = {.struct_size = sizeof options,
                                       .no_default_path = 1};
    static const char *const keys[] = {"", "[plugins]\nload = layers.so\n",
                                       "[plugins]\npath = more\n"};
    char text[512];
    cr_assert_eq(mkdir(in_scratch("more"), 0755), 0);
    build("more/layers.so", "plugins/test_layers.c", SHARED);
    for (int i = 0; i < 3; i++) {
        strata_error err = {0};
        strata_network *net;
        cr_assert_eq(strata_registry_create(&empty, &options, &err), STRATA_OK);
        snprintf(text, sizeof text, "%s%s[layer out]\ntype = Pass\n", keys[i], HEAD);
        const char *path = spill("net.ini", text, strlen(text));
        int status = strata_network_load(&net, path, empty, NULL, &err);
        cr_expect_eq(status, i ? STRATA_OK : STRATA_EPARSE, "%s: %s", keys[i],
                     err.message);
        strata_network_destroy(net);
        strata_registry_destroy(empty);
    }
}

Test(network, relative_paths_are_understood)
{
    strata_network *net;
    strata_error err = {0};
    char here[512];
    cr_assert_not_null(getcwd(here, sizeof here));
    spill_weights();
    cr_assert_eq(mkdir(in_scratch("more"), 0755), 0);
    build("more/layers.so", "plugins/test_layers.c", SHARED);
    const char text[] = "[plugins]\npath = more\n" HEAD FILE_WEIGHTS
                        "[layer out]\ntype = Affine\nunits = 4\nweights = w:fc\n";
    spill("net.ini", text, strlen(text));
    cr_assert_eq(chdir(scratch), 0);
    cr_expect_eq(strata_network_load(&net, "net.ini", registry, NULL, &err), STRATA_OK,
                 "%s", err.message);
    cr_assert_eq(chdir(here), 0);
    strata_network_destroy(net);
}

Test(network, wrong_arguments_are_refused)
{
    strata_network *net;
    strata_error err = {0};
    strata_network_options options = {.struct_size = 1};
    cr_expect_eq(strata_network_load(NULL, "a", registry, NULL, &err), STRATA_EINVAL);
    cr_expect_eq(strata_network_load(&net, NULL, registry, NULL, &err), STRATA_EINVAL);
    cr_expect_eq(strata_network_load(&net, "a", NULL, NULL, &err), STRATA_EINVAL);
    cr_expect_eq(strata_network_load(&net, "a", registry, &options, &err), STRATA_EINVAL);
    cr_expect_eq(strata_network_load(&net, in_scratch("none.ini"), registry, NULL, &err),
                 STRATA_ENOTFOUND);
    cr_expect_eq(strata_network_load(&net, in_scratch("none.ini"), registry, NULL, NULL),
                 STRATA_ENOTFOUND);
    strata_network_destroy(NULL);
}
