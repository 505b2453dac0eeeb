import MartletContent
import MartletURL
import MartletCaching
import MartletCore
import MartletHSTS
import MartletWire

extension FuzzEntry {
    /// Field values: dates, ranges, lists, numbers, media types, codings, forms, text, HSTS fields and files.
    ///
    /// All parsers receive the same bytes. An accepted value survives formatting and parsing.
    static let fieldValues = FuzzEntry("field-values") { (bytes) throws(FuzzFinding) in
        let text = ByteText.string(bytes[...])
        try checkDates(text)
        try checkDateNumber(bytes)
        try checkRanges(text)
        try checkNumber(bytes)
        try checkList(bytes)
        try checkMediaType(text)
        try checkCodings(text)
        try checkForm(text)
        try checkText(bytes)
        try checkHSTS(bytes)
    }

    private static func checkHSTS(_ bytes: [UInt8]) throws(FuzzFinding) {
        if let field = StrictTransportSecurity(bytes) {
            let text = "max-age=\(field.maximumAge)\(field.includesSubdomains ? "; includeSubDomains" : "")"
            try require(StrictTransportSecurity(text.utf8) == field, "\(text) reads back otherwise")
        }
        let entries = HSTSFile.content(bytes).entries
        let text = HSTSFile.text(of: entries.values)
        let again = HSTSFile.content(Array(text.utf8))
        try require(again.entries == entries && again.malformedLines.isEmpty, "\(text) reads back otherwise")
    }

    private static func checkDates(_ text: String) throws(FuzzFinding) {
        let now = HTTPDate(secondsSinceEpoch: 1_800_000_000)
        for date in [HTTPDate(text), HTTPDate(text, now: now), HTTPDate(text, now: now, ignoresCase: true)] {
            guard let date else { continue }
            try require(
                HTTPDate(date.text) == date, "\(text.debugDescription) is \(date.text), and that another date"
            )
            try require(HTTPDate(date.text, now: now) == date, "\(date.text) depends on the present")
        }
        for other in [Int64.min, .max, 0] {
            // The clock can be arbitrarily wrong.
            _ = HTTPDate(text, now: HTTPDate(secondsSinceEpoch: other))
        }
    }

    /// Checks that any number of seconds is formatted as a date, and that dates of the years 0 to 9999 are parsed back.
    private static func checkDateNumber(_ bytes: [UInt8]) throws(FuzzFinding) {
        let seconds = bytes.prefix(8).reduce(into: Int64(0)) { $0 = $0 << 8 | Int64($1) }
        let date = HTTPDate(secondsSinceEpoch: seconds)
        let read = HTTPDate(date.text)
        try require(read != nil, "\(seconds) is written as \(date.text), which is no date")
        let isWritable = (-62_167_219_200...253_402_300_799).contains(seconds)
        try require(!isWritable || read == date, "\(seconds) is written as \(date.text)")
    }

    private static func checkRanges(_ text: String) throws(FuzzFinding) {
        if let field = RangeField(parsing: text) {
            try require(RangeField(parsing: field.text) == field, "\(field.text) reads back otherwise")
            try require(field.ranges.count <= RangeField.rangeCountLimit, "\(field.ranges.count) ranges")
            for length: UInt64 in [0, 1, 500, .max] {
                for range in field.resolved(in: length) {
                    try require(!range.isEmpty && range.upperBound <= length, "\(range) of \(length) bytes")
                }
            }
        }
        if let range = ContentRange(parsing: text) {
            try require(ContentRange(parsing: range.text) == range, "\(range.text) reads back otherwise")
            if case .satisfied(let bytes, let total) = range {
                try require(!bytes.isEmpty && total.map { bytes.upperBound <= $0 } ?? true, "\(range.text)")
            }
        }
    }

    private static func checkNumber(_ bytes: [UInt8]) throws(FuzzFinding) {
        let number = DecimalNumber(bytes[...])
        let isDigits = !bytes.isEmpty && bytes.allSatisfy(ByteClass.isDigit)
        try require((number == .invalid) != isDigits, "\(bytes) is \(number)")
        guard isDigits else { return }
        let value = Int64(String(decoding: bytes, as: UTF8.self)).map { DecimalNumber.value(UInt64($0)) }
        try require(number == value ?? .overflow, "\(bytes) is \(number)")
    }

    private static func checkList(_ bytes: [UInt8]) throws(FuzzFinding) {
        let elements = Array(ElementList(bytes[...]))
        for element in elements {
            try require(!element.isEmpty, "an empty member")
            try require(element.elementsEqual(ByteClass.trimmed(element)), "a member with blank ends")
        }
        let joined = Array(elements.joined(separator: [UInt8(ascii: ",")]))
        let again = Array(ElementList(joined[...]))
        try require(again.count == elements.count, "\(elements.count) members read back as \(again.count)")
        for (left, right) in zip(elements, again) {
            try require(left.elementsEqual(right), "\(Array(left)) reads back as \(Array(right))")
        }
        var fields = FieldBlock()
        for name in ["Keep-Alive", "Connection", "Transfer-Encoding"] {
            fields.append(name: Array(name.utf8), value: bytes)
        }
        let hint = KeepAliveHint(fields)
        try require((hint.timeout ?? 0) >= 0 && (hint.remainingUses ?? 0) >= 0, "\(hint)")
        let closes = elements.contains { ByteClass.equalsIgnoringCase($0, "close".utf8.span) }
        try require(
            !closes || !PersistenceRule.persists(version: .http11, fields: fields), "close is overlooked")
    }

    private static func checkMediaType(_ text: String) throws(FuzzFinding) {
        guard let type = MediaType(text) else { return }
        let written = type.description
        try require(MediaType(written) == type, "\(written.debugDescription) reads back otherwise")
        try require(!type.type.isEmpty && !type.subtype.isEmpty, "\(written.debugDescription)")
        for parameter in type.parameters {
            try require(type[parameter.name] == parameter.value, "\(parameter) is not found by its name")
        }
    }

    private static func checkCodings(_ text: String) throws(FuzzFinding) {
        guard let plan = try? ContentCodingPlan(fieldValues: [text]) else { return }
        try require(plan.codings.count <= DecompressionLimits().maximumCodings, "\(plan)")
    }

    private static func checkForm(_ text: String) throws(FuzzFinding) {
        let items = FormEncoding.decoded(text)
        for space in [FormEncoding.Space.plus, .percentEncoded] {
            let written = FormEncoding.encoded(items, space: space)
            try require(written.utf8.allSatisfy(ByteClass.isTarget), "\(written.debugDescription)")
            // An item without a name and a value is not written.
            let kept = items.filter { !$0.name.isEmpty || $0.value != nil }
            try require(FormEncoding.decoded(written) == kept, "\(written) reads back otherwise")
        }
    }

    private static func checkText(_ bytes: [UInt8]) throws(FuzzFinding) {
        for charset in ["utf-8", "latin1", "latin9", "utf-16le", "utf-16be", "utf-32", "utf-32le"] {
            let text = TextDecoding(charset: charset).text(from: bytes)
            try require(text.utf8.count <= 3 * bytes.count, "\(bytes.count) bytes became \(text.utf8.count)")
        }
    }
}
