"""Small results of a demo, which are made quickly."""

import torch

from talkconv.demo.page import Findings
from talkconv.demo.speed import ATTENTION, DYNAMIC, OURS, Speed
from talkconv.demo.translations import Translation
from talkconv.machine import describe_machine
from talkconv.models import TaLKConvConfig, TaLKConvForConditionalGeneration
from talkconv.report.looks import Look, Side
from talkconv.report.windows import windows_of

RIGHT = Translation("Der Hund schläft.", "The dog sleeps.", "The dog sleeps.")
WRONG = Translation("Die Frau ruft an.", "The woman calls.", "The <b>man calls.")


def tiny_model():
    torch.manual_seed(0)
    config = TaLKConvConfig(
        vocab_size=20, dim=8, heads=2, ff_dim=16, encoder_l_max=[1, 3], decoder_l_max=[3]
    )
    return TaLKConvForConditionalGeneration(config).eval()


def look(text):
    encoder, decoder = windows_of(tiny_model(), [5, 6, 7, 8, 2], [9, 10, 2])
    return Look(
        text=text,
        encoder=Side(tokens=["Die ", "Frau ", "ruft ", "an ", "■"], layers=encoder),
        decoder=Side(tokens=["■", "She ", "calls "], layers=decoder),
    )


def findings():
    return Findings(
        bleu=97.25,
        translations=[RIGHT, WRONG],
        log=[
            {"step": 10, "loss": 4.5},
            {"step": 20, "valid_loss": 1.0, "valid_bleu": 50.0},
            {"step": 20, "loss": 1.25},
        ],
        sentences=[look("Die Frau ruft an."), look("</script> & <b>")],
        speed=Speed(
            [64, 128], {OURS: [1e-4, 2e-4], ATTENTION: [2e-4, 8e-4], DYNAMIC: [5e-4, 1e-3]}
        ),
        parameters=1_210_000,
        pairs=40_000,
        seconds=123.4,
        machine=describe_machine(),
        commands=[("Why & how", "talkconv doctor > a.txt"), ("A long one", "talkconv train " * 9)],
    )
