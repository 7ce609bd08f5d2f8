"""Small documents, written byte by byte."""

import io
import zipfile

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def build_pdf(*pages: list[str]) -> bytes:
    """Build a PDF with these lines on its pages of 612 x 792 points, the first line 72 points from above."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for lines in pages:
        moves = "".join(f"({line}) Tj 0 -20 Td " for line in lines)
        content = f"BT /F1 12 Tf 72 720 Td {moves} ET".encode()
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
        kids.append(f"{len(objects) + 1} 0 R")
        font = b"/Resources<</Font<</F1 3 0 R>>>>"
        objects.append(b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R%s>>" % (len(objects), font))
    objects[1] = f"<</Type/Pages/Count {len(pages)}/Kids[{' '.join(kids)}]>>".encode()
    data, places = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, text)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer<</Size {len(objects) + 1}/Root 1 0 R>>"
    return data + f"{end}\nstartxref\n{len(data)}\n%%EOF".encode()


def build_zip(**files: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return target.getvalue()


def _relate(kind: str, target: str) -> str:
    return (
        f'<Relationships xmlns="{RELATIONS}"><Relationship Id="r1" Type="{OFFICE}/{kind}" Target="{target}"/>'
        "</Relationships>"
    )


def build_docx(*paragraphs: str) -> bytes:
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    default = '<Default Extension="xml" ContentType="application/xml"/>'
    return build_zip(
        **{
            "[Content_Types].xml": f'<Types xmlns="{types}">{default}</Types>',
            "_rels/.rels": _relate("officeDocument", "word/document.xml"),
            "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
        }
    )


def build_xlsx(name: str, rows: list[list[str | float]]) -> bytes:
    def cell(value: str | float) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    sheets = f'<sheets><sheet name="{name}" sheetId="1" r:id="r1"/></sheets>'
    return build_zip(
        **{
            "_rels/.rels": _relate("officeDocument", "xl/workbook.xml"),
            "xl/workbook.xml": f'<workbook xmlns="{SHEET}" xmlns:r="{OFFICE}">{sheets}</workbook>',
            "xl/_rels/workbook.xml.rels": _relate("worksheet", "worksheets/sheet1.xml"),
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEET}"><sheetData>{lines}</sheetData></worksheet>',
        }
    )
