/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer: what differs from program to program is a struct of the packs that a thread
 * loads, and five short functions over its inputs. The kernels that call them are the
 * same text for all (kernels.inc).
 */
#include "plugins/pointwise/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PACK_BYTES 16

struct writer {
    char *to;
    size_t size, length; /* length goes on past size, as snprintf's does */
    const struct program *program;
    const struct source_kind *kind;
};

static void print(struct writer *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void print(struct writer *w, const char *format, ...)
{
    const size_t room = w->length < w->size ? w->size - w->length : 0;
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(room ? w->to + w->length : NULL, room, format, arguments);
    va_end(arguments);
    w->length += n < 0 ? w->size : (size_t)n;
}

static const char *type_of(int32_t dtype)
{
    return dtype == STRATA_FP16 ? "half" : dtype == STRATA_BF16 ? "bfloat" : "float";
}

enum { INPUTS_WHOLE = 1, INPUTS_ONE = 2, INPUTS_ALL = 3 };

/* `text` for each input of `which`: $ is its number, @ its type. */
static void print_inputs(struct writer *w, int which, const char *text)
{
    for (int k = 0; k < w->program->n_in; k++) {
        const char *type = w->kind->truth >> k & 1 ? "uint8_t" : "T";
        if (!(which & (w->kind->one >> k & 1 ? INPUTS_ONE : INPUTS_WHOLE)))
            continue;
        for (const char *at = text; *at; at++) {
            if (*at == '$')
                print(w, "%d", k);
            else if (*at == '@')
                print(w, "%s", type);
            else if (*at != '&' || k + 1 < w->program->n_in) /* & separates */
                print(w, "%c", *at == '&' ? ',' : *at);
        }
    }
}

/* ---- the program ------------------------------------------------------------------- */

static void print_row(struct writer *w, uint8_t row)
{
    const bool input = row < PROGRAM_INPUTS;
    print(w, "%s%d", input ? "x" : "k", input ? row : row - PROGRAM_INPUTS);
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static bool print_step(struct writer *w, const struct program_step *s)
{
    const uint8_t row[] = {s->a, s->b, s->c};
    const double number[] = {s->alpha, s->beta};
    struct program_operation o;
    if (!program_operation(s->op, &o))
        return false;
    print(w, "    ");
    print_row(w, s->to);
    print(w, " = op_%s(", o.name);
    for (int i = 0; i < o.operands; i++) {
        print(w, "%s", i ? ", " : "");
        print_row(w, row[i]);
    }
    for (int i = 0; i < o.numbers; i++) /* their bits, whatever the locale */
        print(w, ", __uint_as_float(0x%08xu)", bits_of((float)number[i]));
    print(w, ");\n");
    return true;
}

static bool print_program(struct writer *w)
{
    const struct program *p = w->program;
    bool known = true;
    print(w, "DEVICE float program(");
    print_inputs(w, INPUTS_ALL, "float x$& ");
    print(w, ")\n{\n    float k0 = 0, k1 = 0, k2 = 0, k3 = 0;\n");
    for (int i = 0; i < p->n_steps && known; i++)
        known = print_step(w, &p->step[i]);
    print(w, "    return ");
    print_row(w, p->step[p->n_steps - 1].to);
    print(w, ";\n}\n");
    return known;
}

/* ---- what kernels call ------------------------------------------------------------- */

static void print_flat(struct writer *w)
{
    print(w, "struct raw {\n");
    print_inputs(w, INPUTS_WHOLE, "    pack<@, N> x$;\n");
    print(w, "};\nDEVICE void fetch(raw &r, const job &j, int64_t i)\n{\n");
    print_inputs(w, INPUTS_WHOLE, "    r.x$ = load<@, N>((const @ *)j.x[$] + i);\n");
    print(w, "}\nDEVICE void compute(float *y, const raw &r, const job &j)\n{\n");
    print_inputs(w, INPUTS_WHOLE, "    float v$[N];\n    widen<@, N>(v$, r.x$);\n");
    print_inputs(w, INPUTS_ONE,
                 "    const float s$ = value(*(const @ *)j.x[$]);\n"
                 "    float v$[N];\n#pragma unroll\n"
                 "    for (int e = 0; e < N; e++)\n        v$[e] = s$;\n");
    print(w, "#pragma unroll\n    for (int e = 0; e < N; e++)\n        y[e] = program(");
    print_inputs(w, INPUTS_ALL, "v$[e]& ");
    print(w, ");\n}\nDEVICE float single(const job &j, int64_t i)\n{\n");
    print_inputs(w, INPUTS_WHOLE,
                 "    const float v$ = value(((const @ *)j.x[$])[i]);\n");
    print_inputs(w, INPUTS_ONE, "    const float v$ = value(*(const @ *)j.x[$]);\n");
    print(w, "    return program(");
    print_inputs(w, INPUTS_ALL, "v$& ");
    print(w, ");\n}\n");
}

static void print_walk(struct writer *w)
{
    print(w, "DEVICE void reach(float *y, const job &j, const walk &w, const place &p)\n"
             "{\n");
    print_inputs(w, INPUTS_ALL,
                 "    float v$[N];\n    gather<@, N>(v$, j.x[$], w, p, $);\n");
    print(w, "#pragma unroll\n    for (int e = 0; e < N; e++)\n        y[e] = program(");
    print_inputs(w, INPUTS_ALL, "v$[e]& ");
    print(w, ");\n}\nDEVICE float reach_one(const job &j, const walk &w, const place &p, "
             "int lane)\n{\n    return program(");
    print_inputs(w, INPUTS_ALL, "gather_one<@>(j.x[$], w, p, $, lane)& ");
    print(w, ");\n}\n");
}

int source_packs(const struct program *p, const struct source_kind *kind)
{
    int whole = 0;
    for (int k = 0; k < p->n_in; k++)
        whole += !(kind->one >> k & 1);
    return whole < 2 ? 4 : whole < 4 ? 2 : 1;
}

int source_write(char *to, size_t size, const struct program *p,
                 const struct source_kind *kind)
{
    struct writer w = {to, size, 0, p, kind};
    print(&w, "typedef %s T;\ntypedef %s Out;\n", type_of(kind->dtype),
          kind->truth_out ? "uint8_t" : "T");
    print(&w, "#define FLAT %d\n", kind->flat);
    print(&w, "#define N %d\n#define K %d\n#define PACKS %d\n#define BLOCK %d\n",
          kind->dtype == STRATA_FP16 || kind->dtype == STRATA_BF16 ? PACK_BYTES / 2
                                                                   : PACK_BYTES / 4,
          (int)p->n_in, source_packs(p, kind), SOURCE_BLOCK);
    if (!print_program(&w))
        return -1;
    kind->flat ? print_flat(&w) : print_walk(&w);
    return w.length < size ? (int)w.length : -1;
}
