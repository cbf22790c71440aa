"""Format strings, and the bound on what a kernel prints."""

from cutegen_nb.simulator.state.printf import LIMIT, pieces_of

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


def test_a_flood_is_cut_and_says_so(machine, capsys):
    got = output(machine, capsys, "x" * 3000, "", block=512)
    assert len(got) < LIMIT + 100
    assert got.endswith(f"[kernel output cut after {LIMIT} characters]\n")


def test_a_format_without_conversions_is_itself():
    (piece,) = pieces_of("plain text\n")
    assert (piece.before, piece.width) == ("plain text\n", 0)
