import FoundationEssentials
import Glibc
import Martlet
import MartletWire

/// The condition of `-z`: newer or older than an instant.
struct TimeCondition: Hashable, Sendable {
    /// The request field that contains the date. With curl's prefix `=` it is `Last-Modified`.
    let field: HTTPField.Name
    let date: HTTPDate

    /// Parses a date after an optional `-`, `=` or `+`. As in curl, a text that is not a date is the name of a file,
    /// whose modification time is used. `nil` if there is no such file.
    init?(_ text: String, now: HTTPDate) {
        let mark = text.unicodeScalars.first
        field = mark == "-" ? .ifUnmodifiedSince : mark == "=" ? .lastModified : .ifModifiedSince
        let isMarked = mark == "-" || mark == "=" || mark == "+"
        let rest = isMarked ? text.rest(after: text.startIndex) : text
        if let date = DateText.read(rest, now: now) {
            self.date = date
        } else if let status = FileInput.status(of: rest) {
            date = HTTPDate(secondsSinceEpoch: Int64(status.st_mtim.tv_sec))
        } else {
            return nil
        }
    }

    static var present: HTTPDate { HTTPDate(secondsSinceEpoch: Int64(Date().timeIntervalSince1970.rounded(.down))) }

    /// Whether a response satisfies the condition; a response without a valid `Last-Modified` does.
    func isMet(by head: ResponseHead) -> Bool {
        guard let text = head.fields.firstValue(of: "last-modified"), let modified = HTTPDate(text) else { return true }
        return field == .ifModifiedSince ? modified > date : field == .lastModified || modified < date
    }
}

enum EntityTagFile {
    private static let emptyTag = Array("\"\"".utf8)

    /// Returns the value of `If-None-Match`: the contents of the file of `--etag-compare` without line breaks; `nil`
    /// without the option. The value is an empty tag if the file is empty, or if it cannot be read and `--etag-save` is
    /// given.
    static func compared(_ options: TransferOptions) throws(UsageError) -> [UInt8]? {
        guard let name = options.comparedTagFile else { return nil }
        let bytes: [UInt8]
        do throws(UsageError) { bytes = try InputFile.contents(of: name) } catch {
            guard options.savedTagFile != nil else { throw error }
            return emptyTag
        }
        let tag = bytes.filter { ![0, 10, 13].contains($0) }
        try check(
            tag.allSatisfy(ByteClass.isFieldValue), "option --etag-compare: “\(name)” has a control character")
        return tag.isEmpty ? emptyTag : tag
    }

    /// Checks that the file of `--etag-save` can be written, before anything is sent. Existing contents are retained.
    static func prepare(_ options: TransferOptions) async throws(UsageError) {
        guard let name = options.savedTagFile else { return }
        do throws(OutputError) {
            try await Console.write([], toFile: name, [], makesDirectories: options.makesDirectories)
        } catch { throw UsageError("option --etag-save: \(error)", status: .readFailed) }
    }

    /// Saves the tag of a complete response. Without a tag the file becomes empty, but is unchanged after a 304.
    static func save(_ head: ResponseHead, _ options: TransferOptions) async throws(OutputError) {
        guard let name = options.savedTagFile, name != "-" else { return }
        let line = self.line(of: head)
        if line.isEmpty, head.status == 304 { return }
        try await Console.write(line, toFile: name, .truncate, makesDirectories: options.makesDirectories)
    }

    /// Writes the tag to standard output, before the body, if the file is `-`.
    static func show(_ head: ResponseHead, _ options: TransferOptions) async throws(OutputError) {
        guard options.savedTagFile == "-" else { return }
        try await Console.write(line(of: head))
    }

    /// Returns the tag as a line; empty without a tag.
    private static func line(of head: ResponseHead) -> [UInt8] {
        head.fields.rawValues(of: "etag").first.map { Array($0) + [10] } ?? []
    }
}

/// A parser of dates in HTTP's three formats, ISO 8601, and curl's format: names of days, months and zones, days, years
/// and times, in any order.
struct DateText {
    private var rest: Substring.UTF8View
    private var month: Int?
    private var day: Int?
    private var year: Int64?
    private var clock: Int64?
    private var zone: Int64?
    private var hasWeekday = false
    private var mayReadDay = true
    /// The maximum length of a text, in bytes.
    private static let lengthLimit = 100
    private static let weekdays = "monday tuesday wednesday thursday friday saturday sunday".split(separator: " ").map(
        String.init)
    private static let months = [
        "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
        "december",
    ]
    /// The offsets of the zones from UTC in minutes, positive to the east.
    private static let zones: [String: Int64] = [
        "gmt": 0, "ut": 0, "utc": 0, "z": 0, "wet": 0, "bst": 60, "cet": 60, "met": 60, "mez": 60, "cest": 120,
        "mest": 120, "mesz": 120, "eet": 120, "est": -300, "edt": -240, "cst": -360, "cdt": -300, "mst": -420,
        "mdt": -360, "pst": -480, "pdt": -420,
    ]

    /// Reads a date; without a zone it is in UTC, without a time at midnight.
    static func read(_ text: String, now: HTTPDate) -> HTTPDate? {
        guard text.utf8.count <= lengthLimit else { return nil }
        if let date = HTTPDate(text, now: now) { return date }
        var reader = DateText(rest: text[...].utf8)
        return reader.read().map { HTTPDate(secondsSinceEpoch: $0) }
    }

    private mutating func read() -> Int64? {
        var before: UInt8?
        while let byte = rest.first {
            if ByteClass.isDigit(byte) {
                guard readNumber(after: before) else { return nil }
            } else if DateText.isLetter(byte) {
                guard readWord() else { return nil }
            } else {
                guard byte < 0x80 else { return nil }
                rest = rest.dropFirst()
            }
            before = byte
        }
        guard let year, let month, let day, year >= 1583 else { return nil }
        let date = CivilDate(year: year, month: month, day: day)
        return date.isValid ? date.daysSinceEpoch * 86_400 + (clock ?? 0) - (zone ?? 0) * 60 : nil
    }

    private mutating func readWord() -> Bool {
        let word = String(Substring(rest.prefix(while: DateText.isLetter))).lowercased()
        rest = rest.dropFirst(word.utf8.count)
        if word == "t", day != nil, clock == nil {
            // Separates the date from the time in ISO 8601.
        } else if !hasWeekday, DateText.index(of: word, in: DateText.weekdays) != nil {
            hasWeekday = true
        } else if month == nil, let index = DateText.index(of: word, in: DateText.months) {
            month = index + 1
        } else if zone == nil, let offset = DateText.zones[word] {
            zone = offset
        } else {
            return false
        }
        return true
    }

    /// Returns the index of a name, written in full or as its first three letters.
    private static func index(of word: String, in names: [String]) -> Int? {
        names.firstIndex { $0 == word || $0.prefix(3) == word }
    }

    private mutating func readNumber(after before: UInt8?) -> Bool {
        let digits = rest.prefix(while: ByteClass.isDigit)
        rest = rest.dropFirst(digits.count)
        guard digits.count <= 8, let value = Int64(String(Substring(digits))) else { return false }
        if rest.first == UInt8(ascii: ":"), clock == nil { return readClock(value) }
        let isSigned = before == UInt8(ascii: "+") || before == UInt8(ascii: "-")
        if clock != nil, zone == nil, isSigned, digits.count == 4 && value <= 1400 || digits.count == 2 && value <= 14 {
            return readZone(value, digitCount: digits.count, isWest: before == UInt8(ascii: "-"))
        }
        if digits.count == 8, year == nil, month == nil, day == nil {
            (year, month, day) = (value / 10_000, Int(value / 100 % 100), Int(value % 100))
            return true
        }
        let mayBeISO = digits.count == 4 && year == nil && month == nil && day == nil
        return mayBeISO && rest.first == UInt8(ascii: "-") && readISO(year: value) || useAsDayOrYear(value)
    }

    /// Uses a number as the day or the year. A number below 100 is a year from 1971 to 2070.
    private mutating func useAsDayOrYear(_ value: Int64) -> Bool {
        if mayReadDay, day == nil {
            mayReadDay = false
            if (1...31).contains(value) {
                day = Int(value)
                return true
            }
        }
        guard year == nil else { return false }
        year = value >= 100 ? value : value > 70 ? value + 1900 : value + 2000
        if day == nil { mayReadDay = true }
        return true
    }

    /// Reads `-MM-DD` after a year.
    private mutating func readISO(year: Int64) -> Bool {
        let bytes = Array(rest.prefix(6))
        guard bytes.count == 6, bytes[3] == UInt8(ascii: "-"),
            let month = Int(String(decoding: bytes[1...2], as: UTF8.self)),
            let day = Int(String(decoding: bytes[4...5], as: UTF8.self))
        else { return false }
        (self.year, self.month, self.day) = (year, month, day)
        rest = rest.dropFirst(6)
        return true
    }

    /// Reads `:MM` or `:MM:SS` after an hour. Fractions of a second are ignored.
    private mutating func readClock(_ hour: Int64) -> Bool {
        guard let minute = readPart(), hour < 24, minute < 60 else { return false }
        var second: Int64 = 0
        if rest.first == UInt8(ascii: ":") {
            guard let part = readPart(), part <= 60 else { return false }
            second = part
            if rest.first == UInt8(ascii: ".") { rest = rest.dropFirst().drop(while: ByteClass.isDigit) }
        }
        clock = hour * 3600 + minute * 60 + second
        return true
    }

    private mutating func readPart() -> Int64? {
        rest = rest.dropFirst()
        let digits = rest.prefix(while: ByteClass.isDigit)
        guard digits.count == 2 else { return nil }
        rest = rest.dropFirst(2)
        return Int64(String(Substring(digits)))
    }

    /// Reads a zone: `+HHMM`, `+HH:MM` or `+HH`.
    private mutating func readZone(_ value: Int64, digitCount: Int, isWest: Bool) -> Bool {
        var minutes = digitCount == 4 ? value / 100 * 60 + value % 100 : value * 60
        if digitCount == 2, rest.first == UInt8(ascii: ":") {
            guard let part = readPart(), part < 60 else { return false }
            minutes += part
        }
        zone = isWest ? -minutes : minutes
        return true
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (97...122).contains(byte | 0x20) }
}
