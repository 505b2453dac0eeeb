import FoundationEssentials
import Glibc
import Martlet

/// The condition of `-z`: newer or older than an instant.
struct TimeCondition: Hashable, Sendable {
    enum Relation: Hashable, Sendable {
        /// The response must be newer.
        case modifiedSince
        /// The response must be older.
        case unmodifiedSince
        /// curl's `=`: the date is sent as that of the request itself.
        case lastModified

        /// The header field with the date.
        var field: HTTPField.Name {
            switch self {
            case .modifiedSince: .ifModifiedSince
            case .unmodifiedSince: .ifUnmodifiedSince
            case .lastModified: .lastModified
            }
        }
    }

    let relation: Relation
    let date: HTTPDate

    /// Reads `DATE`, `-DATE`, or the name of a file with the time, in this order as curl; `nil` for other texts.
    init?(_ text: String, now: HTTPDate) {
        let mark = text.unicodeScalars.first
        relation = mark == "-" ? .unmodifiedSince : mark == "=" ? .lastModified : .modifiedSince
        let isMarked = mark == "-" || mark == "=" || mark == "+"
        let rest = isMarked ? text.rest(behind: text.startIndex) : text
        if let date = DateText.read(rest, now: now) {
            self.date = date
        } else if let status = FileInput.status(of: rest) {
            date = HTTPDate(secondsSinceEpoch: Int64(status.st_mtim.tv_sec))
        } else {
            return nil
        }
    }

    static var present: HTTPDate {
        HTTPDate(secondsSinceEpoch: Int64(Date().timeIntervalSince1970.rounded(.down)))
    }

    /// Whether a response fulfils the condition, as one without a date does.
    func isMet(by head: ResponseHead) -> Bool {
        guard let text = head.fields.firstValue(of: "last-modified"), let modified = HTTPDate(text) else {
            return true
        }
        switch relation {
        case .modifiedSince: return modified > date
        case .unmodifiedSince: return modified < date
        case .lastModified: return true
        }
    }

}

/// The files of `--etag-compare` and `--etag-save`.
enum EntityTagFile {
    /// The value of `If-None-Match`: the file without its line breaks, or an empty tag; `nil` without a file.
    ///
    /// A missing file is an empty one if its tag is saved as well.
    static func compared(_ options: TransferOptions) throws(UsageError) -> String? {
        guard let name = options.comparedTagFile else { return nil }
        let bytes: [UInt8]
        do throws(UsageError) { bytes = try InputFile.contents(of: name) } catch {
            guard options.savedTagFile != nil else { throw error }
            return "\"\""
        }
        let text = String(decoding: bytes.filter { ![0, 10, 13].contains($0) }, as: UTF8.self)
        return text.isEmpty ? "\"\"" : try HeaderLines.checked(text, "--etag-compare")
    }

    /// Checks that a tag can be saved, before anything is sent. The contents of the file stay.
    static func prepare(_ options: TransferOptions) async throws(UsageError) {
        guard let name = options.savedTagFile, name != "-" else { return }
        do throws(OutputError) {
            try await Console.write([], toFile: name, [], makesFolders: options.makesFolders)
        } catch { throw UsageError("option --etag-save: \(error)", status: .readFailed) }
    }

    /// Saves the tag of a complete response, on a line. A response without a tag leaves an empty file; but a 304 without one
    /// leaves the tag that it was compared with.
    static func save(_ head: ResponseHead, _ options: TransferOptions) async throws(OutputError) {
        guard let name = options.savedTagFile, name != "-" else { return }
        let line = self.line(of: head)
        if line.isEmpty, head.status == 304 { return }
        try await Console.write(line, toFile: name, .truncate, makesFolders: options.makesFolders)
    }

    /// Writes the tag to standard output before the body, for the file `-`.
    static func show(_ head: ResponseHead, _ options: TransferOptions) async throws(OutputError) {
        guard options.savedTagFile == "-" else { return }
        try await Console.write(line(of: head))
    }

    /// The tag on a line; empty without a tag.
    private static func line(of head: ResponseHead) -> [UInt8] {
        head.fields.rawValues(of: "etag").first.map { Array($0) + [10] } ?? []
    }
}
