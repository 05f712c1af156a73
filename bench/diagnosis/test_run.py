"""The runner's judgement on hand-made reports: python3 bench/diagnosis/test_run.py"""
import importlib.machinery
import importlib.util
import unittest
from pathlib import Path

loader = importlib.machinery.SourceFileLoader("diagnosis_run", str(Path(__file__).with_name("run")))
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("diagnosis_run", loader))
loader.exec_module(run)

MAP = {"healthy": False, "first_finding": "input-serial-map", "also_right": ["input-bound"], "must_name": ["Map"]}
WELL = {"healthy": True, "first_finding": None, "also_right": ["compute-bound"], "must_name": []}


def finding(rule, severity="high", text="", **more):
    return {"rule": rule, "severity": severity, "title": "", "evidence": [{"text": text}], "fix": [], **more}


class Judge(unittest.TestCase):
    def verdict(self, truth, *findings):
        return run.judge(truth, {"findings": list(findings)})

    def test_nothing_said_is_wrong_of_a_sick_run_and_right_of_a_healthy_one(self):
        self.assertFalse(self.verdict(MAP)["right"])
        self.assertTrue(self.verdict(WELL)["right"])

    def test_the_first_finding_counts(self):
        promise = {"speedup_low": 2, "speedup_if_fixed": 3, "speedup_high": 4}
        right = finding("input-serial-map", text="stage ParallelMapV2", **promise)
        said = self.verdict(MAP, right, finding("retracing"))
        self.assertTrue(said["right"] and said["sharp"] and said["named"])
        self.assertEqual(said["predicted"], [2, 3, 4])
        self.assertFalse(self.verdict(MAP, finding("retracing"), right)["right"])

    def test_a_broader_rule_is_right_but_not_sharp_and_must_name_the_stage(self):
        said = self.verdict(MAP, finding("input-bound"))
        self.assertTrue(said["right"])
        self.assertFalse(said["sharp"] or said["named"])

    def test_a_healthy_run_may_have_low_findings_only(self):
        self.assertTrue(self.verdict(WELL, finding("compute-bound", "low"))["right"])
        self.assertFalse(self.verdict(WELL, finding("tiny-ops", "medium"))["right"])

    def test_the_second_cause_of_a_mixed_run(self):
        mixed = {**MAP, "second": "python-overhead"}
        self.assertTrue(self.verdict(mixed, finding("input-bound"), finding("python-overhead"))["second_found"])
        self.assertFalse(self.verdict(mixed, finding("input-bound"))["second_found"])


class Scripts(unittest.TestCase):
    def test_every_workload_states_its_truth(self):
        for name, truth in run.workloads().items():
            with self.subTest(name):
                needed = {"framework", "first_finding", "also_right", "must_name", "healthy", "kind", "fix"}
                self.assertLessEqual(needed, truth.keys())
        scripts = [it for it in (run.HERE / "workloads").glob("*.py") if not it.name.startswith("_")]
        self.assertEqual(len(scripts), len(run.workloads()))
        self.assertLessEqual(set(run.VARIED), run.workloads().keys())

    def test_every_pytorch_workload_states_its_truth(self):
        truths = run.workloads("torch")
        for name, truth in truths.items():
            with self.subTest(name):
                needed = {"framework", "first_finding", "also_right", "must_name", "healthy", "kind", "fix"}
                self.assertLessEqual(needed, truth.keys())
                self.assertLessEqual(set(truth.get("same_fix", [])), set(truth["also_right"]))
        self.assertEqual(len(list((run.HERE / "torch").glob("[!_]*.py"))), len(truths))

    def test_xprof_in_few_words(self):
        said = {"statement": "Your program is HIGHLY input-bound because 59.4% of the total step time sampled is …",
                "all_other_statement": "7.4 % of the total step time sampled is spent on 'All Others' time."}
        self.assertEqual(run.in_few_words(said), "highly input-bound 59 %, all others 7 %")
        self.assertEqual(run.in_few_words({"statement": "No step time measured."}), "no steps found")


if __name__ == "__main__":
    unittest.main()
