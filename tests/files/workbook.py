"""Workbooks of Excel, made in code."""

import io
import zipfile


def workbook(sheets, state=None):
    """A workbook of these sheets: a text is shared, a pair is a value and its style, and the rest is what it is."""
    texts, parts, names, related = [], {}, [], []

    def cell(row, column, value):
        name = f"{chr(65 + column)}{row}"
        match value:
            case None:
                return ""
            case bool():
                return f'<c r="{name}" t="b"><v>{int(value)}</v></c>'
            case str() if value.startswith("#"):
                return f'<c r="{name}" t="e"><v>{value}</v></c>'
            case str() if value.startswith("="):
                return f'<c r="{name}" t="str"><f>A1&amp;"x"</f><v>{value[1:]}</v></c>'
            case str():
                texts.append(value.replace("&", "&amp;").replace("<", "&lt;"))
                return f'<c r="{name}" t="s"><v>{len(texts) - 1}</v></c>'
            case (number, style):
                return f'<c r="{name}" s="{style}"><v>{number}</v></c>'
        return f'<c r="{name}"><v>{value}</v></c>'

    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    for place, (name, rows) in enumerate(sheets.items(), 1):
        data = "".join(
            f'<row r="{number}">' + "".join(cell(number, column, value) for column, value in enumerate(row)) + "</row>"
            for number, row in enumerate(rows, 1) if row
        )  # fmt: skip
        parts[f"xl/worksheets/sheet{place}.xml"] = f"<worksheet {space}><sheetData>{data}</sheetData></worksheet>"
        hidden = f' state="{state[name]}"' if state and name in state else ""
        names.append(f'<sheet name="{name}" sheetId="{place}" r:id="r{place}"{hidden}/>')
        related.append(f'<Relationship Id="r{place}" Type="t" Target="worksheets/sheet{place}.xml"/>')
    parts["xl/workbook.xml"] = f'<workbook {space} xmlns:r="{relations}"><sheets>{"".join(names)}</sheets></workbook>'
    parts["xl/_rels/workbook.xml.rels"] = f"<Relationships>{''.join(related)}</Relationships>"
    parts["xl/sharedStrings.xml"] = f"<sst {space}>" + "".join(f"<si><t>{text}</t></si>" for text in texts) + "</sst>"
    styles = '<numFmts><numFmt numFmtId="164" formatCode="dd.mm.yyyy hh:mm"/></numFmts><cellXfs>'
    styles += "".join(f'<xf numFmtId="{number}"/>' for number in [0, 14, 164, 20]) + "</cellXfs>"
    parts["xl/styles.xml"] = f"<styleSheet {space}>{styles}</styleSheet>"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, '<?xml version="1.0" encoding="UTF-8"?>' + text)
    return packed.getvalue()
