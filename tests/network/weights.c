/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of networks: from files by prefix and key, random ones, folders that are out of
 * bounds.
 */
#include "tests/network/network_text.h"

TestSuite(network_weights, .init = network_start, .fini = network_stop, .timeout = 600);

static void expect_values(const struct network_weight *w, int n, const float *want)
{
    float values[32];
    strata_error err = {0};
    cr_assert_eq(w->dtype, STRATA_FP32);
    cr_assert_eq(network_weight_load(w, values, &err), STRATA_OK, "%s", err.message);
    for (int i = 0; i < n; i++)
        cr_expect_eq(values[i], want[i], "%s[%d] = %g", w->name, i, values[i]);
}

Test(network_weights, weights_come_by_prefix_and_by_key)
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

Test(network_weights, one_name_may_be_an_attribute_and_a_weight)
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

Test(network_weights, random_weights_follow_the_seed_and_the_name)
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

Test(network_weights, weights_stay_in_the_folder_unless_allowed)
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
            cr_expect(strstr(err.message, ":7:8: error: ") &&
                          strstr(err.message, "or write 'anywhere = yes'"),
                      "%s", err.message);
        strata_network_destroy(net);
    }
}

/* A header of 118 bytes behind the first 10, as numpy.save writes it. */
Test(network_weights, an_array_of_a_file_has_no_name)
{
    char bytes[128 + 3 * sizeof(float)] = "\x93NUMPY\1\0\x76";
    strata_network *net;
    strata_error err = {0};
    snprintf(bytes + 10, 119, "%-117s\n",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
    spill("v.npy", bytes, sizeof bytes);
    static const char text[] =
        HEAD "[weights v]\nfile = v.npy\n[layer out]\n"
             "type = Affine\nunits = 4\nweight = zeros\nbias = v\n";
    const char *path = spill("net.ini", text, sizeof text - 1);
    cr_assert_eq(strata_network_load(&net, path, registry, NULL, &err), STRATA_EPARSE);
    cr_expect_not_null(strstr(err.message, "weight 'bias' of layer out: the file's array "
                                           "has dims 3; "),
                       "%s", err.message);
}
