"""Each check of disassembly.py passes on code that is as it should be, and fails on code that is not."""

import unittest

import disassembly

NEW = "_ZN6pagoda7kernels4cuda6device"


def listing(mangled, *instructions):
    lines = [f'\t.section\t.text.{NEW}{mangled},"ax",@progbits']
    lines += [f"        /*{16 * i:04x}*/              {text} ;" for i, text in enumerate(instructions)]
    return "\n".join(lines)


FEW_ROWS = ["@!P0 EXIT", "LDGSTS.E.BYPASS.128.ZFILL [R2], [R4.64]", "LDGDEPBAR", "DEPBAR.LE SB0, 0x1", "BAR.SYNC 0x0",
            *["LDSM.16.M88.4 R8, [R2]", "HMMA.16816.F32.BF16 R4, R8, R12, R4"] * 4, "@P1 FADD R0, R0, R4",
            "CALL.REL.NOINC `(.L_x_3)", "CALL.REL.NOINC `($__internal_1_$__cuda_sm3x_div_rn_noftz_f32_slowpath)"]


def faults(*instructions, mangled="11GemmFewRowsENS1_13GemmArgumentsE", may_spill=()):
    kernels = disassembly.parse(listing(mangled, *instructions))
    return [f for f in disassembly.faults_of(kernels, may_spill) if not f.startswith("there is no kernel")]


class DisassemblyTest(unittest.TestCase):
    def test_code_as_the_source_says_has_no_fault(self):
        self.assertEqual(faults(*FEW_ROWS), [])

    def test_products_and_barriers_are_counted(self):
        self.assertIn("has 5 HMMA; the source says 4", faults(*FEW_ROWS, "HMMA.16816.F32.BF16 R4, R8, R12, R4")[0])
        self.assertIn("has 0 BAR; the source says 1", faults(*[i for i in FEW_ROWS if "BAR.SYNC" not in i])[0])

    def test_a_fused_product_is_found_where_there_should_be_none(self):
        self.assertIn("has 1 FUSED", faults(*FEW_ROWS, "FFMA R4, R5, R6, R7")[0])

    def test_copies_that_are_not_waited_for_are_found(self):
        self.assertIn("asynchronous copies", faults(*[i for i in FEW_ROWS if not i.startswith("DEPBAR")])[0])

    def test_a_spill_is_found_unless_it_is_allowed(self):
        self.assertIn("spill", faults(*FEW_ROWS, "STL [R1], R0")[0])
        self.assertEqual(faults(*FEW_ROWS, "STL [R1], R0", may_spill={"GemmFewRows"}), [])

    def test_double_precision_approximations_and_atomic_sums_are_found(self):
        for instruction in ("DFMA R4, R6, R8, R4", "MUFU.EX2 R4, R5", "@P0 RED.E.ADD.F32.FTZ.RN [R2], R3", "ATOMG.ADD R1, [R2], R3"):
            self.assertIn("which no kernel may have", faults(*FEW_ROWS, instruction)[0])
        self.assertEqual(faults(*FEW_ROWS, "MUFU.RCP R4, R5"), [])

    def test_a_call_of_anything_else_is_found(self):
        self.assertIn("calls", faults(*FEW_ROWS, "CALL.ABS.NOINC `(expf)")[0])

    def test_a_kernel_that_is_missing_is_found(self):
        self.assertIn("there is no kernel GemmManyRows", disassembly.faults_of(disassembly.parse(""), ()))

    def test_names_are_those_of_the_table(self):
        self.assertEqual(disassembly.plain_name(NEW + "6DecodeILi256ELi16EEEvNS1_15DecodeArgumentsE"), "Decode<256, 16>")
        self.assertEqual(disassembly.plain_name(NEW + "4RopeILb1ELb0EEEvNS1_13RopeArgumentsE"), "Rope")


if __name__ == "__main__":
    unittest.main()
