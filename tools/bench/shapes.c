/* SPDX-License-Identifier: Apache-2.0
 *
 * trtexec's --shapes=x:1x3x224x224,y:1x10: a dim that a name of [profile] stands for, as
 * those that a model leaves free, becomes that size of the name; others are the input's.
 */
#include "tools/bench/bench.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "tools/compare/variant.h"

/* A part of a shape: "N" or "past+T", between blanks, or a number. */
struct part {
    const char *text;
    int length;
};

/* The next one, of "N x 3 x 224" or "1x3x224"; false at the end. */
static bool next_part(struct part *p, const char **at)
{
    *at += strspn(*at, " \t");
    p->text = *at;
    p->length = (int)strcspn(*at, isdigit((unsigned char)**at) ? " \t,x" : " \t,");
    *at += p->length;
    *at += strspn(*at, " \t");
    *at += **at == 'x' || **at == ',';
    return p->length > 0;
}

static const char *shape_of(const strata_network *net, const char *name, size_t n)
{
    for (size_t i = 0; i < config_sections(net->config); i++) {
        struct config_section *s = config_section(net->config, i);
        const bool is = strcmp(s->kind, "input") == 0 && strlen(s->name) == n &&
                        memcmp(s->name, name, n) == 0;
        const struct config_pair *shape = is ? config_get(s, "shape") : NULL;
        if (shape)
            return shape->value;
    }
    return NULL;
}

static int count_parts(const char *text)
{
    struct part p;
    int n = 0;
    while (next_part(&p, &text))
        n++;
    return n;
}

/* As many parts as the input's shape has; names stay, and have the sizes given. */
static int set_parts(struct tool_options *o, const char *input, int length,
                     const char *shape, const char *dims, strata_error *err)
{
    char text[STRATA_MAX_RANK * (CONFIG_MAX_KEY + 4)] = "";
    struct part was, given;
    size_t used = 0;
    int status = STRATA_OK;
    while (status == STRATA_OK && next_part(&was, &shape) && next_part(&given, &dims)) {
        const bool sum = memchr(was.text, '+', (size_t)was.length) != NULL;
        const bool name = isalpha((unsigned char)was.text[0]);
        const struct part *p = name || sum ? &was : &given;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s",
                                 used ? " x " : "", p->length, p->text);
        if (used >= sizeof text)
            return error_set(err, STRATA_EINVAL, "--shapes %.*s: too long", length,
                             input);
        if (name && !sum)
            status = variant_set_once(o, err, "profile.%.*s=%.*s", was.length, was.text,
                                      given.length, given.text);
    }
    return status == STRATA_OK
               ? variant_set(o, err, "input %.*s.shape=%s", length, input, text)
               : status;
}

int bench_set_shapes(struct tool_options *o, const strata_network *net, const char *list,
                     strata_error *err)
{
    int status = STRATA_OK;
    while (*list && status == STRATA_OK) {
        const size_t n = strcspn(list, ","), name = strcspn(list, ":");
        char dims[256];
        snprintf(dims, sizeof dims, "%.*s", (int)(n - name - 1), list + name + 1);
        const char *shape = net ? shape_of(net, list, name) : NULL;
        if (shape && count_parts(shape) != count_parts(dims))
            return error_set(err, STRATA_EINVAL,
                             "--shapes %.*s: input '%.*s' is %s: %d numbers are needed, "
                             "not %d",
                             (int)n, list, (int)name, list, shape, count_parts(shape),
                             count_parts(dims));
        status = shape
                     ? set_parts(o, list, (int)name, shape, dims, err)
                     : variant_set(o, err, "input %.*s.shape=%s", (int)name, list, dims);
        list += n + (list[n] == ',');
    }
    return status;
}

/* Of a sum's number, and of a name that has two sizes, one would run that was not asked
 * for: so what is there is looked at. net: with the sizes set. */
static int check_input(const strata_network *net, const struct network_input *in,
                       const char *dims, strata_error *err)
{
    const struct network_tensor *t = &net->tensors[in->tensor];
    struct part given;
    for (int d = 0; d < t->rank && next_part(&given, &dims); d++)
        if (strtoll(given.text, NULL, 10) != t->dims[d])
            return error_set(err, STRATA_EINVAL,
                             "--shapes: dim %d of '%s' is %lld by the names' sizes, not "
                             "%.*s; give one size for each name, and sums as they are",
                             d, in->name, (long long)t->dims[d], given.length,
                             given.text);
    return STRATA_OK;
}

int bench_check_shapes(const strata_network *net, const char *list, strata_error *err)
{
    int status = STRATA_OK;
    for (; *list && status == STRATA_OK;
         list += strcspn(list, ","), list += *list == ',') {
        const size_t n = strcspn(list, ",:");
        for (size_t i = 0; i < net->n_inputs && list[n] == ':'; i++)
            if (strlen(net->inputs[i].name) == n &&
                memcmp(net->inputs[i].name, list, n) == 0 && status == STRATA_OK)
                status = check_input(net, &net->inputs[i], list + n + 1, err);
    }
    return status;
}
