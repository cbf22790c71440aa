"""Output of kernels appears on stdout, in thread order, as C formats it."""

import pytest

from cutegen_nb.simulator.ptx.faults import OutOfBounds

PROTOTYPE = ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);"


def text_of(format_string):
    data = [*format_string.encode(), 0]
    return f".global .align 1 .b8 form[{len(data)}] = {{{', '.join(map(str, data))}}};"


def printing(stores, *, guard=""):
    return f""".local .align 8 .b8 depot[48]; .reg .b64 %SP, %SPL;
    mov.b64 %SPL, depot; cvta.local.u64 %SP, %SPL; {stores}
    {guard}
    {{ .param .b64 param0; .param .b64 param1; .param .b32 retval0;
      st.param.b64 [param1], %SP; mov.b64 %rd8, form; cvta.global.u64 %rd9, %rd8; st.param.b64 [param0], %rd9;
      call.uni (retval0), vprintf, (param0, param1); ld.param.b32 %r60, [retval0]; }}
    DONE: """


def output(machine, capsys, format_string, stores, *, grid=1, block=2, guard=""):  # noqa: PLR0913
    text = machine.kernel(printing(stores, guard=guard), before=PROTOTYPE + text_of(format_string))
    machine.launch(text, grid=grid, block=block)
    return capsys.readouterr().out


def test_threads_print_in_order_with_their_own_arguments(machine, capsys):
    stores = """mov.u32 %r1, %ctaid.x; st.local.b32 [%SPL], %r1; st.local.b32 [%SPL+4], %r99;
    cvt.rn.f64.u32 %rd1, %r99; mul.f64 %rd1, %rd1, 0d3FF4000000000000; st.local.b64 [%SPL+8], %rd1;"""
    got = output(machine, capsys, "cta %d thread %u: %f %%\n", stores, grid=2)
    want = [f"cta {cta} thread {t}: {t * 1.25:.6f} %\n" for cta in range(2) for t in range(2)]
    assert got == "".join(want)


def test_wide_arguments_lie_on_their_alignment(machine, capsys):
    stores = """st.local.b32 [%SPL], -5; mov.b64 %rd2, -123456789012; st.local.b64 [%SPL+8], %rd2;
    st.local.b32 [%SPL+16], 65; mov.b64 %rd3, form; st.local.b64 [%SPL+24], %rd3; st.local.b32 [%SPL+32], 255;"""
    got = output(
        machine,
        capsys,
        "%5d|%lld|%c|%.3s|%#x|%-4uZ",
        stores.replace("255;", "255; st.local.b32 [%SPL+36], 7;"),
        block=1,
    )
    assert got == "   -5|-123456789012|A|%5d|0xff|7   Z"


def test_only_active_threads_print(machine, capsys):
    guard = "and.b32 %r2, %r99, 1; setp.eq.b32 %p1, %r2, 0; @%p1 bra DONE;"
    assert output(machine, capsys, "%d ", "st.local.b32 [%SPL], %r99;", block=6, guard=guard) == "1 3 5 "


def test_a_string_that_lies_nowhere_is_a_finding(machine):
    text = machine.kernel(
        printing("").replace("cvta.global.u64 %rd9, %rd8", "mov.b64 %rd9, 64"),
        before=PROTOTYPE + text_of("a"),
    )
    with pytest.raises(OutOfBounds, match="printf reads a string"):
        machine.launch(text, block=1)


def test_an_assertion_stops_the_launch(machine):
    before = ".extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);"
    body = """{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    setp.ne.b32 %p1, %r99, 3; @%p1 bra OK; call.uni __assertfail, (a, b, c, d, e); OK: }"""
    with pytest.raises(Exception, match=r"Thread \(3, 0, 0\) .* failed a device assertion"):
        machine.launch(machine.kernel(body, before=before), block=8, arrays=[])
    machine.launch(machine.kernel(body, before=before), block=3, arrays=[])
