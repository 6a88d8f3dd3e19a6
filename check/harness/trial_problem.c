/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems of a trial: where it is, in words, and who is told.
 */
#include "check/harness/trial.h"

#include "registry/math/mode.h"

#include <stdio.h>

#define LINES_PER_CASE 5 /* reported in full */

static size_t append(char *text, size_t size, size_t used, const char *more)
{
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, "%s", more);
    return used;
}

void trial_shapes(const struct trial *t, char *text, size_t size)
{
    char number[32];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < t->node.node.n_in; i++) {
        const strata_tensor *in = &t->node.in[i];
        used = append(text, size, used, i ? "," : "");
        if (in->rank == 0)
            used = append(text, size, used, "none");
        for (int d = 0; d < in->rank; d++) {
            snprintf(number, sizeof number, "%s%lld", d ? "x" : "",
                     (long long)in->dims[d]);
            used = append(text, size, used, number);
        }
    }
}

static size_t append_formats(char *text, size_t size, size_t used, const uint64_t *masks,
                             const strata_tensor *tensors, int n)
{
    for (int i = 0; i < n; i++) {
        used = append(text, size, used, i ? "," : "");
        used = append(text, size, used,
                      tensors[i].rank ? format_mask_name(masks[i], tensors[i].rank)
                                      : "none");
    }
    return used;
}

void trial_formats(const struct trial *t, char *text, size_t size)
{
    text[0] = '\0';
    if (!t->impl)
        return;
    size_t used =
        append_formats(text, size, 0, t->formats.in, t->node.in, t->node.node.n_in);
    used = append(text, size, used, "->");
    append_formats(text, size, used, t->formats.out, t->node.out, t->node.node.n_out);
}

static void report_line(struct trial *t, const char *rule, const char *text)
{
    char line[2048], formats[256], shapes[256], mode[32] = "";
    const int math = math_of(&t->node.node);
    if (math != STRATA_MATH_DEFAULT)
        snprintf(mode, sizeof mode, " (%s)", math_name(math));
    trial_formats(t, formats, sizeof formats);
    trial_shapes(t, shapes, sizeof shapes);
    snprintf(line, sizeof line, "%s {%s} impl %s%s, %s, input %s, %s, seed %llu: %s: %s",
             t->c->layer, t->attrs, t->impl ? t->impl->impl.name : "-", mode, formats,
             shapes, t->variant ? t->variant : "shape", (unsigned long long)t->seed, rule,
             text);
    t->report(line);
}

void trial_problem(struct trial *t, const char *rule, const char *text)
{
    if (t->tally)
        t->tally->failures++;
    t->result.failures++;
    if (t->target->problem)
        t->target->problem(t, rule, text, t->target->user);
    else if (t->result.failures <= LINES_PER_CASE)
        report_line(t, rule, text);
}

void trial_session_problem(struct trial *t, const struct session *s,
                           const char *otherwise)
{
    trial_problem(t, s->fault ? s->fault : otherwise, s->err.message);
}

void trial_attrs(char *out, size_t size, const char *text, const struct harness_shape *in,
                 int n_in)
{
    const int64_t channels = n_in > 0 && in[0].rank > 1 ? in[0].dims[1] : 1;
    size_t used = 0;
    for (; text && *text && used + 24 < size; text++)
        if (text[0] == '$' && text[1] == 'C') {
            used +=
                (size_t)snprintf(out + used, size - used, "%lld", (long long)channels);
            text++;
        } else {
            out[used++] = *text;
        }
    out[used] = '\0';
}

void trial_node_problem(struct trial *t, const char *otherwise)
{
    const char *rule = t->node.fault ? t->node.fault : otherwise;
    char text[STRATA_MESSAGE_SIZE];
    snprintf(text, sizeof text, "%s", t->node.err.message);
    trial_problem(t, rule, text);
}
