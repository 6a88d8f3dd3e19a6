/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of a model, and graphs that branches and loops hold, in their place.
 */
#include "tests/network/import/imported.h"

#define HEAD "ir 9\nopset 17\nopset my 1\n"

/* Scores 0 and log 3, so that the second value counts three times as much. */
#define FLEX                                                                             \
    "opset ai.onnx.preview 1\ninit q f 1x1x1x1 1\ninit k f 1x1x2x1 0 1.0986123\n"        \
    "init v f 1x1x2x1 4 8\n"

static const struct {
    const char *name, *text, *wanted;
} cases[] = {
    {"a function",
     HEAD "init x f 2 1 2\nnode my::twice x -> y\noutput y\n"
          "function my::twice a -> b\nopset 17\nnode Add a,a -> b\nend\n",
     "2: 2 4"},
    {"a function of a function, names used twice",
     HEAD "init x f 1 1\nnode my::four x -> a\nnode my::four a -> y\noutput y\n"
          "function my::twice a -> b\nopset 17\nnode Add a,a -> c\nnode Identity c -> b\n"
          "end\n"
          "function my::four a -> b\nopset 17\nopset my 1\nnode my::twice a -> c\n"
          "node my::twice c -> b\nend\n",
     "1: 16"},
    {"attributes of the call, and defaults",
     HEAD "init x f 1 -8\nnode my::leak x -> y alpha=0.5f\nnode my::leak x -> z\n"
          "output y\noutput z\n"
          "function my::leak a -> b alpha=0.25f\nopset 17\n"
          "node LeakyRelu a -> b alpha=@alpha\nend\n",
     "1: -4; 1: -2"},
    {"an attribute that is not given",
     HEAD "init x f 1 -100\nnode my::leak x -> y\noutput y\n"
          "function my::leak a -> b alpha\nopset 17\n"
          "node LeakyRelu a -> b alpha=@alpha\nend\n",
     "1: -1"},
    {"the function's own opset",
     HEAD "init x f 1x2x2 1 1 1 1\nnode my::soft x -> y\nnode Softmax x -> z\n"
          "output y\noutput z\n"
          "function my::soft a -> b\nopset 11\nnode Softmax a -> b\nend\n",
     "1x2x2: 0.25 0.25 0.25 0.25; 1x2x2: 0.5 0.5 0.5 0.5"},
    {"an absent input and a constant among the outputs",
     HEAD "init x f 1 3\nnode my::cut x,_ -> y,z\noutput y\noutput z\n"
          "function my::cut a,low -> b,a\nopset 17\nnode Clip a,low -> b\nend\n",
     "1: 3; 1: 3"},
    {"functions of one name",
     HEAD "init x f 1 3\nnode my::f/two x -> y\nnode my::f x -> z\noutput y\noutput z\n"
          "function my::f a -> b\nopset 17\nnode Neg a -> b\nend\n"
          "function my::f/two a -> b\nopset 17\nnode Add a,a -> b\nend\n",
     "1: 6; 1: -3"},
    {"a function for a standard operator",
     HEAD "init x f 1 3\nnode Relu x -> y\noutput y\n"
          "function ai.onnx::Relu a -> b\nopset 17\nnode Neg a -> b\nend\n",
     "1: -3"},
    {"a model without nodes", HEAD "init x f 1 3\noutput x\n", "1: 3"},
    {"FlexAttention, its scores turned round and its probabilities doubled",
     HEAD FLEX "node ai.onnx.preview::FlexAttention q,k,v -> a scale=1f "
               "score_mod={ prob_mod={\ninput s\nnode Neg s -> r\noutput r\n}\n"
               "input s\nnode Add s,s -> r\noutput r\n}\nnode Neg a -> y\noutput y\n",
     "1x1x1x1: -10"},
    {"FlexAttention, whose heads share keys",
     HEAD FLEX "node Concat q,q -> two axis=1\n"
               "node ai.onnx.preview::FlexAttention two,k,v -> a\n"
               "node Add a,q -> y\noutput y\n",
     "1x2x1x1: 8 8"},
    {"If, with a value from around it",
     HEAD "init x f 1 3\ninit c b - 1\n"
          "node If c -> y then_branch={ else_branch={\n"
          "init k f 1 10\nnode Add x,k -> r\noutput r\n}\n"
          "node Sub x,x -> r\noutput r\n}\noutput y\n",
     "1: 13"},
    {"If, the other branch, nested",
     HEAD "init x f 1 3\ninit c b - 0\ninit d b - 1\n"
          "node If c -> y then_branch={ else_branch={\nnode Neg x -> r\noutput r\n}\n"
          "node If d -> r then_branch={ else_branch={\n"
          "node Add x,x -> q\noutput q\n}\nnode Neg x -> q\noutput q\n}\n"
          "output r\n}\noutput y\n",
     "1: 6"},
    {"If, whose branch is a value from around it",
     HEAD "init x f 1 3\ninit c b - 1\n"
          "node If c -> y then_branch={ else_branch={\noutput x\n}\n"
          "node Neg x -> r\noutput r\n}\noutput y\n",
     "1: 3"},
    {"If in a function, which reads its input",
     HEAD "init x f 1 3\ninit c b - 1\nnode my::choose c,x -> y\noutput y\n"
          "function my::choose c,v -> r\nopset 17\n"
          "node If c -> r then_branch={ else_branch={\nnode Neg v -> q\noutput q\n}\n"
          "node Abs v -> q\noutput q\n}\nend\n",
     "1: -3"},
    {"Loop with a trip count and joined values",
     HEAD "init n i - 3\ninit c b - 1\ninit x f 1 1\n"
          "node Loop n,c,x -> y,all body={\n"
          "input i i -\ninput go b -\ninput s f 1\nnode Add s,s -> t\n"
          "node Identity go -> on\nnode Identity t -> part\n"
          "output on\noutput t\noutput part f 1\n}\noutput y\noutput all\n",
     "1: 8; 3x1: 2 4 8"},
    {"Loop that a condition ends",
     HEAD "init c b - 1\ninit x i - 1\ninit ten i - 10\n"
          "node Loop _,c,x -> y body={\n"
          "input i i -\ninput go b -\ninput s i -\nnode Add s,s -> t\n"
          "node Less t,ten -> on\noutput on\noutput t\n}\noutput y\n",
     "-: 16"},
    {"Loop that runs no round",
     HEAD "init n i - 0\ninit c b - 1\ninit x f 1 1\n"
          "node Loop n,c,x -> y,all body={\n"
          "input i i -\ninput go b -\ninput s f 1\nnode Add s,s -> t\n"
          "output go\noutput t\noutput t f 1\n}\noutput y\noutput all\n",
     "1: 1; 0x1:"},
    {"Loop of the round's number",
     HEAD "init n i - 3\ninit x i - 0\nnode Loop n,_,x -> y body={\n"
          "input i i -\ninput go b -\ninput s i -\nnode Add s,i -> t\n"
          "output go\noutput t\n}\noutput y\n",
     "-: 3"},
    {"Loop in a Loop",
     HEAD "init n i - 2\ninit x f 1 1\nnode Loop n,_,x -> y body={\n"
          "input i i -\ninput go b -\ninput s f 1\nnode Loop n,_,s -> t body={\n"
          "input j i -\ninput more b -\ninput u f 1\nnode Add u,u -> v\n"
          "output more\noutput v\n}\noutput go\noutput t\n}\noutput y\n",
     "1: 16"},
    {"Scan",
     HEAD "init s f 2 0 0\ninit x f 3x2 1 2 3 4 5 6\n"
          "node Scan s,x -> y,z num_scan_inputs=1 body={\n"
          "input a f 2\ninput b f 2\nnode Add a,b -> c\nnode Identity c -> d\n"
          "output c\noutput d f 2\n}\noutput y\noutput z\n",
     "2: 9 12; 3x2: 1 2 4 6 9 12"},
    {"Scan from behind, along other axes",
     HEAD "init s f 2 0 0\ninit x f 2x3 1 3 5 2 4 6\n"
          "node Scan s,x -> y,z num_scan_inputs=1 scan_input_axes=[1] "
          "scan_input_directions=[1] scan_output_axes=[-1] scan_output_directions=[1] "
          "body={\ninput a f 2\ninput b f 2\nnode Add a,b -> c\nnode Identity c -> d\n"
          "output c\noutput d f 2\n}\noutput y\noutput z\n",
     "2: 9 12; 2x3: 9 8 5 12 10 6"},
    {"Scan of opset 8",
     "ir 3\nopset 8\ninit s f 1x2 0 0\ninit x f 1x3x2 1 2 3 4 5 6\n"
     "node Scan _,s,x -> y,z num_scan_inputs=1 body={\n"
     "input a f 2\ninput b f 2\nnode Add a,b -> c\nnode Identity c -> d\n"
     "output c\noutput d f 2\n}\noutput y\noutput z\n",
     "1x2: 9 12; 1x3x2: 1 2 4 6 9 12"},
    {"a sequence made, changed and read",
     HEAD "init a f 1 1\ninit b f 1 2\ninit c f 1 3\ninit i i - -1\ninit one i - 1\n"
          "node SequenceConstruct a,b -> s\nnode SequenceInsert s,c,one -> t\n"
          "node SequenceErase t,i -> u\nnode SequenceAt u,i -> y\n"
          "node SequenceLength t -> n\nnode ConcatFromSequence t -> all axis=0\n"
          "node ConcatFromSequence t -> rows axis=0 new_axis=1\n"
          "output y\noutput n\noutput all\noutput rows\n",
     "1: 3; -: 3; 3: 1 3 2; 3x1: 1 3 2"},
    {"a sequence that a loop fills",
     HEAD "init n i - 3\ninit x f 1 2\nnode SequenceEmpty -> e\n"
          "node Loop n,_,e -> s body={\ninput i i -\ninput go b -\ninput q\n"
          "node SequenceInsert q,x -> r\noutput go\noutput r\n}\n"
          "node ConcatFromSequence s -> y axis=0\noutput y\n",
     "3: 2 2 2"},
    {"a sequence of parts, mapped",
     HEAD "init x f 3 1 2 3\ninit two i - 2\nnode SplitToSequence x,two -> s\n"
          "node SequenceMap s -> t body={\ninput a\nnode Neg a -> b\noutput b\n}\n"
          "node ConcatFromSequence t -> y axis=0\noutput y\n",
     "3: -1 -2 -3"},
    {"optional values",
     HEAD "init x f 1 4\nnode Optional x -> o\nnode OptionalHasElement o -> h\n"
          "node OptionalGetElement o -> y\noutput y\noutput h\n",
     "1: 4; -: 1"},
};

Test(import_inline, what_is_put_in_place)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        expect_values(cases[i].name, cases[i].text, cases[i].wanted);
}

#define LOOP_HEAD                                                                        \
    "input i i -\ninput go b -\ninput s f 1\nnode Add s,s -> t\noutput go\noutput "      \
    "t\n}\n"

static const struct {
    const char *name, *text, *what;
} refused[] = {
    {"a function that calls itself",
     HEAD "input x f 1\nnode my::f x -> y\noutput y\n"
          "function my::f a -> b\nopset my 1\nnode my::f a -> b\nend\n",
     "functions call each other more than 16 deep"},
    {"functions that multiply",
     HEAD "input x f 1\nnode my::f x -> y\noutput y\n"
          "function my::f a -> b\nopset my 1\nnode my::f a -> c\nnode my::f a -> d\n"
          "node my::f a -> e\nnode my::f a -> b\nend\n",
     "deep"},
    {"too many inputs",
     HEAD "input x f 1\nnode my::f x,x -> y\noutput y\n"
          "function my::f a -> b\nopset 17\nnode Abs a -> b\nend\n",
     "has 2 inputs and 1 outputs; the function has 1 and 1"},
    {"a name that nothing makes", HEAD "input x f 1\nnode Add x,z -> y\noutput y\n",
     "reads 'z', which no input"},
    {"a name that a later node of the function makes",
     HEAD "input x f 1\nnode my::f x -> y\noutput y\n"
          "function my::f a -> b\nopset 17\nnode Add a,c -> b\nnode Abs a -> c\nend\n",
     "reads 'c', which no input, no initializer and no node before it makes"},
    {"a name that is made twice",
     HEAD "input x f 1\nnode Abs x -> y\nnode Neg x -> y\noutput y\n",
     "'y' is made twice"},
    {"a name that a function makes twice",
     HEAD "input x f 1\nnode my::f x -> y\noutput y\n"
          "function my::f a -> b\nopset 17\nnode Abs a -> b\nnode Neg a -> b\nend\n",
     "b' is made twice"},
    {"an output of a function that nothing makes",
     HEAD "input x f 1\nnode my::f x -> y\noutput y\n"
          "function my::f a -> b\nopset 17\nnode Abs a -> c\nend\n",
     "b' is made by no node"},
    {"FlexAttention of three dims",
     HEAD "opset ai.onnx.preview 1\ninput q f 1x2x3\n"
          "node ai.onnx.preview::FlexAttention q,q,q -> y\noutput y\n",
     "must be floats of four dims"},
    {"If of an input",
     HEAD "input c b -\ninput x f 1\nnode If c -> y then_branch={ else_branch={\n"
          "node Abs x -> r\noutput r\n}\nnode Concat x,x -> r axis=0\noutput r\n}\n"
          "output y\n",
     "the condition is not constant; it is 'c'"},
    {"If of an input, whose branch no layer does",
     HEAD "input c b -\ninput x f 1\nnode If c -> y then_branch={ else_branch={\n"
          "node Abs x -> r\noutput r\n}\nnode Unique x -> r\noutput r\n}\n"
          "output y\n",
     "the condition is not constant; it is 'c'"},
    {"Loop that a computed condition ends",
     HEAD "init c b - 1\ninput x f 1\nnode Loop _,c,x -> y body={\n"
          "input i i -\ninput go b -\ninput s f 1\nnode Add s,s -> t\n"
          "init ten f 1 10\nnode Less t,ten -> l\nnode Squeeze l -> on\n"
          "output on\noutput t\n}\noutput y\n",
     "the condition of a round is not constant; it hangs on values"},
    {"an axis that is an input",
     HEAD "input w i -\ninput x f 1x1x1\nnode CumSum x,w -> y\noutput y\n",
     "it is the model's input 'w': give --constant w=FILE"},
    {"If without a branch", HEAD "init c b - 1\nnode If c -> y\noutput y\n",
     "'then_branch' must be a graph"},
    {"Loop of an input",
     HEAD "input n i -\ninput x f 1\nnode Loop n,_,x -> y body={\n" LOOP_HEAD
          "output y\n",
     "the trip count is not constant; it is 'n'"},
    {"Loop of too many rounds",
     HEAD "init n i - 1000000000000\ninput x f 1\nnode Loop n,_,x -> y body={\n" LOOP_HEAD
          "output y\n",
     "more than 1024 nodes"},
    {"Loop without an end, of no nodes",
     HEAD "input x f 1\nnode Loop _,_,x -> y body={\ninput i i -\ninput go b -\n"
          "input s f 1\noutput go\noutput s\n}\noutput y\n",
     "more than 1024 nodes"},
    {"a body of other inputs",
     HEAD "init n i - 2\ninput x f 1\nnode Loop n,_,x,x -> y body={\n" LOOP_HEAD
          "output y\n",
     "'body' has 3 inputs"},
    {"a position that is computed",
     HEAD "input i i -\ninit x f 1 1\nnode SequenceConstruct x -> s\n"
          "node SequenceAt s,i -> y\noutput y\n",
     "the position is not constant; it is 'i'"},
    {"a position beyond the end",
     HEAD "init i i - 1\ninit x f 1 1\nnode SequenceConstruct x -> s\n"
          "node SequenceAt s,i -> y\noutput y\n",
     "position 1 is none of 1"},
    {"an output that is a sequence",
     HEAD "init x f 1 1\nnode SequenceConstruct x -> y\noutput y\n",
     "output 'y' is a sequence"},
    {"a layer of a sequence",
     HEAD "init x f 1 1\nnode SequenceConstruct x -> s\nnode Abs s -> y\noutput y\n",
     "it reads a sequence"},
};

Test(import_inline, what_is_refused)
{
    for (size_t i = 0; i < ARRAY_LENGTH(refused); i++)
        expect_import_refused(refused[i].name, refused[i].text, refused[i].what);
}

/* Of two nodes whose layers no folder has. */
Test(import_inline, where_plugins_were_sought_is_told_once)
{
    static const char *const names[] = {"STRATA_PLUGIN_PATH", "STRATA_PLUGIN_DIR"};
    char *before[2];
    for (int k = 0; k < 2; k++) {
        const char *set = getenv(names[k]);
        before[k] = set ? strdup(set) : NULL;
        setenv(names[k], "/nonexistent", 1);
    }
    struct imported i = import_model_text(
        HEAD "input x f 2\nnode Abs x -> a\nnode Softmax x -> y\noutput a\noutput y\n");
    for (int k = 0; k < 2; k++) {
        if (before[k])
            setenv(names[k], before[k], 1);
        else
            unsetenv(names[k]);
        free(before[k]);
    }
    const char *first = strstr(i.err.message, "searched:");
    cr_assert_eq(i.status, STRATA_EUNSUPPORTED, "%d: %s", i.status, i.err.message);
    cr_assert_not_null(first, "%s", i.err.message);
    cr_expect_not_null(strstr(i.err.message, "'Unary'"), "%s", i.err.message);
    cr_expect_not_null(strstr(i.err.message, "'Softmax'"), "%s", i.err.message);
    cr_expect_null(strstr(first + 1, "searched:"), "%s", i.err.message);
    imported_close(&i);
}

Test(import_inline, names_begin_with_the_callers)
{
    expect_text("a function",
                HEAD
                "input x f 2\nnode my::f x -> y\noutput y\n"
                "function my::f a -> b\nopset 17\nnode Abs a -> c\nnode Sqrt c -> b\n"
                "end\n",
                "[layer n");
    expect_text("its output",
                HEAD "input x f 2\nnode my::f x -> y\noutput y\n"
                     "function my::f a -> b\nopset 17\nnode Abs a -> b\n"
                     "end\n",
                "[layer y]");
}

/* What only the branch not taken reads is no part of the network. */
Test(import_inline, what_the_other_branch_reads_vanishes)
{
    char *text = imported_text(HEAD "init c b - 0\ninput x f 2\nnode Sqrt x -> unread\n"
                                    "node If c -> y then_branch={ else_branch={\n"
                                    "node Abs unread -> r\noutput r\n}\n"
                                    "node Neg x -> r\noutput r\n}\noutput y\n");
    cr_expect_null(strstr(text, "sqrt"), "%s", text);
    cr_expect_null(strstr(text, "abs"), "%s", text);
    cr_expect_not_null(strstr(text, "neg"), "%s", text);
    free(text);
}
