import Martlet
import MartletTransport

/// A list of URLs: one a line, each followed by indented lines with what is special about it.
///
/// ```
/// # comments and empty lines mean nothing
/// https://example.com/disk.img
///   out=disk-1.img
///   checksum=sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
///   header=X-Mirror: 2
/// ```
enum DownloadList {
    /// The entries, in order.
    /// - Throws: What is wrong with the first bad line, and which it is.
    static func entries(
        of bytes: [UInt8], named name: String, takesBracesLiterally: Bool = false
    ) throws(UsageError) -> [DownloadListEntry] {
        var entries: [DownloadListEntry] = []
        var lines = bytes.split(separator: 10, omittingEmptySubsequences: false)[...]
        if lines.last?.isEmpty == true { lines = lines.dropLast() }
        for (index, line) in lines.enumerated() {
            let place = "\(name == "-" ? "standard input" : name), line \(index + 1)"
            guard let text = String(validating: line.last == 13 ? line.dropLast() : line, as: UTF8.self)
            else { throw UsageError("\(place): is not UTF-8") }
            let content = trimmed(text)
            guard let first = content.first, first != "#" else { continue }
            guard content.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 9 }) else {
                throw UsageError("\(place): has a control character")
            }
            if text.first == " " || text.first == "\t" {
                guard var entry = entries.popLast() else {
                    throw UsageError("\(place): no URL stands before it; URLs are not indented")
                }
                try add(content, to: &entry, place)
                entries.append(entry)
            } else {
                let url = try url(content, takesBracesLiterally, place)
                entries.append(DownloadListEntry(place: place, url: url))
            }
        }
        return entries
    }

    private static func trimmed(_ text: String) -> Substring {
        var text = text[...]
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }

    private static func url(
        _ text: Substring, _ takesBracesLiterally: Bool, _ place: String
    ) throws(UsageError) -> HTTPURL {
        guard !text.contains(where: { $0 == " " || $0 == "\t" }) else {
            throw UsageError("\(place): a line has one URL", status: .malformedURL)
        }
        do throws(UsageError) {
            let text = try GivenURL.completed(String(text), takesBracesLiterally: takesBracesLiterally)
            return try GivenURL.parsed(text)
        } catch {
            throw UsageError("\(place): \(error)", status: error.status)
        }
    }

    private static func add(
        _ content: Substring, to entry: inout DownloadListEntry, _ place: String
    ) throws(UsageError) {
        let parts = content.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts[0]
        guard parts.count == 2 else { throw UsageError("\(place): “\(name)” has no =") }
        let value = String(parts[1])
        guard !value.isEmpty else { throw UsageError("\(place): “\(name)=” has no value") }
        switch name {
        case "out":
            guard entry.output == nil else { throw UsageError("\(place): a URL has one “out=”") }
            guard value != "-" else { throw UsageError("\(place): a download becomes a file") }
            entry.output = value
        case "checksum":
            guard entry.checksum == nil else { throw UsageError("\(place): a URL has one “checksum=”") }
            entry.checksum = try DownloadOptionTable.checksum(value, place)
        case "header": entry.headers.append((place, value))
        default: throw UsageError("\(place): “\(name)=” is none of out=, checksum= and header=")
        }
    }
}

/// A URL of a list with what its lines say.
struct DownloadListEntry: Sendable {
    /// Where it stands, such as `list, line 3`, for messages.
    var place: String
    /// The URL.
    var url: HTTPURL
    /// `out=`: the file's name.
    var output: String?
    /// `checksum=`: what it must come to.
    var checksum: Checksum?
    /// `header=`: field lines of its requests, each with where it stands.
    var headers: [(place: String, line: String)] = []
}

/// The downloads that run, and the means to stop all of them at once.
actor DownloadRoster {
    private enum Phase: Sendable { case open, stopping, stopped }

    private let starter: any DownloadStarting
    private let phase = NewestValue(Phase.open)
    private var running: [Int: Download] = [:]

    /// A roster of downloads that a starter has begun.
    init(_ starter: any DownloadStarting) { self.starter = starter }

    /// Whether none is to begin any more.
    nonisolated var isStopping: Bool { phase.value != .open }

    /// Adds one that was begun; it is stopped at once where all are.
    func add(_ number: Int, _ download: Download) async {
        running[number] = download
        if isStopping { await starter.stop([download]) }
    }

    /// Forgets one that is over.
    func remove(_ number: Int) { running[number] = nil }

    /// Stops all, and lets none begin any more; returns when that is done.
    func stop() async {
        guard !isStopping else { return await untilStopped() }
        phase.update { .stopping }
        await starter.stop(Array(running.values))
        phase.update { .stopped }
    }

    /// Waits until all are stopped, or the task is cancelled.
    nonisolated func untilStopped() async { _ = await phase.next { $0 == .stopped } }
}
