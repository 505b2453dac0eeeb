import FoundationEssentials
import MartletStorage
import MartletTransport
import MartletURL
import MartletWire

/// The file of a store, in the format of curl: a line with a host and its expiry for each entry, such as
/// `.example.com "20270101 00:00:00"`. The dot at the beginning stands for the subdomains. The time is UTC, or
/// `unlimited`. Lines that start with `#` are comments. The functions block.
package enum HSTSFile {
    /// The maximum number of bytes that are read, so that a wrong path cannot fill the memory: 16 MiB.
    private static let byteLimit: UInt64 = 16 << 20
    /// The maximum number of malformed lines that are listed.
    private static let malformedLimit = 1000
    private static let title = "# HSTS cache in the format of curl: https://curl.se/docs/hsts.html\n"
    /// The seconds from 1970 to the end of the year 9999, after which a time has no form in the file.
    package static let latestTime = 253_402_300_799.0

    /// The content of a file.
    package struct Content: Sendable {
        /// The entries by their hosts. Of several for one host, the one that expires last.
        package var entries: [String: HSTSEntry] = [:]
        /// The numbers of malformed lines, starting at 1; the first thousand of them.
        package var malformedLines: [Int] = []
    }

    /// Reads a file. A file that does not exist counts as empty.
    static func read(_ path: String) throws(StorageError) -> Content {
        do throws(StorageError) { return content(try FileReader(path: path).contents(limit: byteLimit)) } catch
            where
            error.isMissingFile
        { return Content() }
    }

    /// Replaces a file completely or not at all. The new file is readable only by its owner.
    static func replace(_ path: String, with entries: [String: HSTSEntry]) throws(StorageError) {
        let file = try AtomicFileWriter(path: path, collision: .replace, mode: 0o600)
        try file.write(Array(text(of: entries.values).utf8))
        try file.publish(collision: .replace)
    }

    /// Parses the text of a file.
    package static func content(_ bytes: [UInt8]) -> Content {
        var content = Content()
        let lines = bytes.split(separator: ByteClass.lineFeed, omittingEmptySubsequences: false)
        for (index, whole) in lines.enumerated() {
            let line = ByteClass.trimmed(whole.last == ByteClass.carriageReturn ? whole.dropLast() : whole)
            if line.isEmpty || line.first == UInt8(ascii: "#") { continue }
            if let entry = entry(line) {
                if let known = content.entries[entry.host], entry.expiresBefore(known) { continue }
                content.entries[entry.host] = entry
            } else if content.malformedLines.count < malformedLimit {
                content.malformedLines.append(index + 1)
            }
        }
        return content
    }

    /// Returns the text of a file, sorted by host.
    package static func text(of entries: some Sequence<HSTSEntry>) -> String {
        entries.sorted { $0.host < $1.host }.reduce(into: title) { text, entry in
            text += "\(entry.includesSubdomains ? "." : "")\(entry.host) \"\(self.text(of: entry.expires))\"\n"
        }
    }

    private static func entry(_ line: ArraySlice<UInt8>) -> HSTSEntry? {
        let fields = line.split(maxSplits: 1, whereSeparator: ByteClass.isBlank)
        guard fields.count == 2 else { return nil }
        let (time, includesSubdomains) = (ByteClass.trimmed(fields[1]), fields[0].first == UInt8(ascii: "."))
        guard time.count >= 2, time.first == UInt8(ascii: "\""), time.last == UInt8(ascii: "\""),
            let expires = expiry(Array(time.dropFirst().dropLast()))
        else { return nil }
        let host = String(decoding: includesSubdomains ? fields[0].dropFirst() : fields[0], as: UTF8.self)
        return try? HSTSEntry(host: host, includesSubdomains: includesSubdomains, expires: expires)
    }

    /// Returns the time of a text: `nil` as the inner optional for `unlimited`, as the outer one if it is malformed.
    private static func expiry(_ text: [UInt8]) -> Date?? {
        if text.elementsEqual("unlimited".utf8) { return .some(nil) }
        guard text.count == 17, text[8] == ByteClass.space, text[11] == UInt8(ascii: ":"), text[14] == text[11],
            let year = number(text[0..<4]), let month = number(text[4..<6]), let day = number(text[6..<8]),
            let hour = number(text[9..<11]), let minute = number(text[12..<14]), let second = number(text[15..<17])
        else { return nil }
        let date = CivilDate(year: Int64(year), month: month, day: day)
        guard date.isValid, hour < 24, minute < 60, second < 60 else { return nil }
        let seconds = date.daysSinceEpoch * 86_400 + Int64(hour * 3600 + minute * 60 + second)
        return Date(timeIntervalSince1970: Double(max(0, seconds)))
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        DecimalNumber(digits).exactValue.map { Int(clamping: $0) }
    }

    private static func text(of expires: Date?) -> String {
        guard let expires, expires.timeIntervalSince1970 <= latestTime else { return "unlimited" }
        let seconds = Int64(max(0, expires.timeIntervalSince1970))
        let day = CivilDate(daysSinceEpoch: seconds / 86_400)
        let clock = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60].map { $0.padded(to: 2) }
        return "\(day.year.padded(to: 4))\(day.month.padded(to: 2))\(day.day.padded(to: 2)) "
            + clock.joined(separator: ":")
    }
}
