CRITERION_TESTS += \
	tests/planner/arena \
	tests/planner/cost \
	tests/planner/cost_file \
	tests/planner/cost_graph \
	tests/planner/cost_keys \
	tests/planner/explain \
	tests/planner/explain_network \
	tests/planner/fuse \
	tests/planner/fusion/blocks \
	tests/planner/fusion/attend \
	tests/planner/fusion/bottleneck \
	tests/planner/fusion/groups \
	tests/planner/fusion/inverted \
	tests/planner/fusion/joined \
	tests/planner/fusion/mixed \
	tests/planner/fusion/mixed_faults \
	tests/planner/fusion/perceptron \
	tests/planner/fusion/pooled \
	tests/planner/fusion/project \
	tests/planner/fusion/reduce \
	tests/planner/fusion/residuals \
	tests/planner/fusion/shortcut \
	tests/planner/fusion/slices \
	tests/planner/fusion/turned \
	tests/planner/linear \
	tests/planner/merge \
	tests/planner/merge_faults \
	tests/planner/merge_values \
	tests/planner/near \
	tests/planner/in_place \
	tests/planner/inside \
	tests/planner/nets \
	tests/planner/objective \
	tests/planner/planner \
	tests/planner/same_plan \
	tests/planner/schedule \
	tests/planner/solver/constraints \
	tests/planner/solver/exact \
	tests/planner/solver/laws \
	tests/planner/solver/plan \
	tests/planner/wishes
tests_planner_cost_SOURCES = tests/planner/cost.c tests/planner/costing.h \
	tests/planner/planning.h
tests_planner_near_SOURCES = tests/planner/near.c tests/planner/costing.h \
	tests/planner/planning.h
tests_planner_cost_keys_SOURCES = tests/planner/cost_keys.c tests/planner/costing.h \
	tests/planner/planning.h
tests_planner_cost_graph_SOURCES = tests/planner/cost_graph.c tests/planner/planning.h \
	tests/support/graphs.h
tests_planner_explain_SOURCES = tests/planner/explain.c tests/planner/solver/draw.c \
	tests/planner/solver/draw.h
tests_planner_explain_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_explain_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_explain_network_SOURCES = tests/planner/explain_network.c \
	tests/planner/planning.h
tests_planner_explain_network_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_explain_network_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_fuse_SOURCES = tests/planner/fuse.c tests/planner/fusion/fusing.h \
	tests/planner/planning.h tests/engine/engine_session.h
tests_planner_fusion_groups_SOURCES = tests/planner/fusion/groups.c \
	tests/planner/fusion/fusing.h tests/planner/planning.h \
	tests/engine/engine_session.h
tests_planner_fusion_blocks_SOURCES = tests/planner/fusion/blocks.c \
	tests/planner/fusion/chains.h tests/planner/fusion/prices.h \
	tests/planner/fusion/fusing.h tests/planner/planning.h \
	tests/engine/engine_session.h
tests_planner_fusion_bottleneck_SOURCES = tests/planner/fusion/bottleneck.c \
	tests/planner/fusion/chains.h tests/planner/fusion/prices.h \
	tests/planner/fusion/fusing.h tests/planner/planning.h \
	tests/engine/engine_session.h
tests_planner_fusion_shortcut_SOURCES = tests/planner/fusion/shortcut.c \
	tests/planner/fusion/chains.h tests/planner/fusion/prices.h \
	tests/planner/fusion/fusing.h tests/planner/planning.h \
	tests/engine/engine_session.h
tests_planner_fusion_attend_SOURCES = tests/planner/fusion/attend.c \
	tests/planner/fusion/chains.h tests/planner/fusion/prices.h \
	tests/planner/fusion/fusing.h tests/planner/planning.h \
	tests/engine/engine_session.h
tests_planner_fusion_pooled_SOURCES = tests/planner/fusion/pooled.c \
	tests/planner/fusion/chains.h tests/planner/fusion/prices.h \
	tests/planner/fusion/fusing.h tests/planner/planning.h \
	tests/engine/engine_session.h
tests_planner_fusion_turned_SOURCES = tests/planner/fusion/turned.c \
	tests/planner/fusion/fusing.h tests/planner/planning.h \
	tests/engine/engine_session.h
tests_planner_fusion_inverted_SOURCES = tests/planner/fusion/inverted.c \
	tests/planner/fusion/chains.h tests/planner/fusion/fusing.h \
	tests/planner/planning.h tests/engine/engine_session.h
tests_planner_fusion_perceptron_SOURCES = tests/planner/fusion/perceptron.c \
	tests/planner/fusion/fusing.h tests/planner/planning.h \
	tests/engine/engine_session.h
tests_planner_fusion_project_SOURCES = tests/planner/fusion/project.c \
	tests/planner/fusion/fusing.h tests/planner/planning.h \
	tests/engine/engine_session.h
tests_planner_fusion_reduce_SOURCES = tests/planner/fusion/reduce.c \
	tests/planner/fusion/fusing.h tests/planner/planning.h \
	tests/engine/engine_session.h
tests_planner_fusion_mixed_faults_SOURCES = tests/planner/fusion/mixed_faults.c \
	tests/planner/planning.h tests/support/fault.c tests/support/fault.h
tests_planner_fusion_mixed_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_fusion_mixed_faults_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_fusion_mixed_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAPS)
tests_planner_fusion_mixed_SOURCES = tests/planner/fusion/mixed.c \
	tests/planner/planning.h
tests_planner_fusion_mixed_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_fusion_mixed_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_fusion_joined_SOURCES = tests/planner/fusion/joined.c \
	tests/planner/planning.h
tests_planner_fusion_joined_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_fusion_joined_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_inside_SOURCES = tests/planner/inside.c tests/planner/planning.h
tests_planner_inside_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_inside_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_merge_SOURCES = tests/planner/merge.c tests/planner/planning.h
tests_planner_merge_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_merge_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_merge_faults_SOURCES = tests/planner/merge_faults.c \
	tests/planner/planning.h tests/support/fault.c tests/support/fault.h
tests_planner_merge_faults_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_merge_faults_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_merge_faults_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAPS)
tests_planner_merge_values_SOURCES = tests/planner/merge_values.c \
	tests/engine/engine_session.h
tests_planner_merge_values_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_merge_values_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_objective_SOURCES = tests/planner/objective.c \
	tests/planner/planning.h
tests_planner_in_place_SOURCES = tests/planner/in_place.c
tests_planner_objective_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_objective_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_planner_SOURCES = tests/planner/planner.c tests/planner/planning.h
tests_planner_planner_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_planner_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_same_plan_SOURCES = tests/planner/same_plan.c \
	tests/planner/planning.h
tests_planner_same_plan_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
tests_planner_same_plan_LDADD = $(LDADD) $(JANSSON_LIBS)
tests_planner_schedule_SOURCES = tests/planner/schedule.c tests/planner/planning.h
tests_planner_solver_constraints_SOURCES = tests/planner/solver/constraints.c \
	tests/planner/solver/draw.c tests/planner/solver/draw.h
tests_planner_solver_exact_SOURCES = tests/planner/solver/exact.c \
	tests/planner/solver/draw.c tests/planner/solver/draw.h
tests_planner_solver_laws_SOURCES = tests/planner/solver/laws.c \
	tests/planner/solver/draw.c tests/planner/solver/draw.h
tests_planner_wishes_SOURCES = tests/planner/wishes.c tests/planner/planning.h

# What plans, with its steps counted; see tests/network/steps.h.
check_LTLIBRARIES += tests/libplanner_counted.la
tests_libplanner_counted_la_SOURCES = $(PLANNER_SOURCES)
# Half of what the library searches, so that networks of half the layers go beyond it.
COUNTED_ARENA = -DARENA_SEARCHED=2048
tests_libplanner_counted_la_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) -DCOUNT_STEPS \
	$(COUNTED_ARENA) \
	-include $(top_srcdir)/tests/network/steps.h
tests_libplanner_counted_la_CFLAGS = $(AM_CFLAGS) $(COUNTING_CFLAGS)
tests_planner_fusion_residuals_SOURCES = tests/planner/fusion/residuals.c \
	tests/planner/fusion/fusing.h tests/planner/planning.h \
	tests/engine/engine_session.h
tests_planner_fusion_slices_SOURCES = tests/planner/fusion/slices.c \
	tests/planner/fusion/chains.h tests/planner/fusion/prices.h \
	tests/planner/fusion/fusing.h tests/planner/planning.h \
	tests/engine/engine_session.h
tests_planner_linear_SOURCES = tests/planner/linear.c tests/planner/planning.h \
	tests/network/steps.h
tests_planner_linear_CPPFLAGS = $(AM_CPPFLAGS) $(COUNTED_ARENA)
tests_planner_linear_LDADD = tests/libplanner_counted.la $(LDADD)
