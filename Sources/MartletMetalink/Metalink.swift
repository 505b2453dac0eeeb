import MartletContent
public import MartletCore
public import MartletDownloads
import MartletStreams
import MartletXML

/// A Metalink 4 document (RFC 5854): files with their URLs, lengths and hashes.
///
/// ```swift
/// for download in try Metalink(bytes).downloads {
///     try await session.download(download.url, to: "/data/\(download.name)", options: download.options)
/// }
/// ```
///
/// Only `http` and `https` URLs are used; others, hashes of pieces and signatures are ignored.
public struct Metalink: Hashable, Sendable {
    /// One URL of a file (RFC 5854 §4.2.16).
    public struct Location: Hashable, Sendable {
        /// The URL, `http` or `https`.
        public var url: HTTPURL
        /// The priority, from 1 (preferred) to 999,999. A URL without a valid priority has 999,999.
        public var priority: Int
        /// The country of the server in lower case (ISO 3166-1 alpha-2); `nil` if absent or invalid.
        public var country: String?
    }

    /// One file (RFC 5854 §4.1.2).
    public struct File: Hashable, Sendable {
        /// The file name: the last component of the document's name, sanitized; `download` if nothing is left of it.
        public var name: String
        /// The length in bytes; `nil` if absent or invalid.
        public var byteCount: UInt64?
        /// The hash under the strongest known hash function; `nil` without any.
        public var checksum: Checksum?
        /// The URLs in the order of their priorities; may be empty.
        public var locations: [Location] = []
    }

    /// A file as the parameters of a download.
    public struct Download: Sendable {
        /// The file name, sanitized.
        public var name: String
        /// The preferred URL.
        public var url: HTTPURL
        /// Options with the mirrors, the checksum and the length of the file.
        public var options: DownloadOptions
    }

    /// The maximum length of a document in bytes: 4 MiB.
    public static let byteLimit = 4 << 20
    /// The maximum number of files and URLs of a document together: 10,000.
    public static let entryLimit = 10_000
    /// The media type of a document.
    public static let mediaType = "application/metalink4+xml"

    /// The files in document order.
    public var files: [File]

    /// Parses a document.
    /// - Throws: ``MetalinkError`` if it is not a Metalink 4 document, is too large, or has a hash that is invalid or
    ///   contradicts another one.
    public init(_ bytes: some Sequence<UInt8>) throws(MetalinkError) {
        var parser = XMLEventParser(
            limits: XMLLimits(
                depth: 32, attributeCount: 64, valueByteCount: 64 << 10, byteCount: Metalink.byteLimit,
                vocabularyByteCount: 1 << 20), doctype: .reject)
        // One byte more than the limit shows that a document exceeds it.
        parser.feed(bytes.prefix(Metalink.byteLimit + 1))
        parser.finish()
        var document = MetalinkDocument()
        do throws(XMLError) {
            while let event = try parser.next() {
                do throws(MetalinkError) { try document.append(event) } catch {
                    throw XMLError(.malformedMarkup, at: parser.position, error.message)
                }
            }
        } catch { throw MetalinkError("\(error)") }
        files = document.files
    }

    /// The files that have URLs, as parameters of downloads. A file has 101 URLs at most. If there is an
    /// `https` URL and no SHA-2 hash, `http` URLs are omitted.
    public var downloads: [Download] {
        files.compactMap { file in
            // Only TLS or a strong hash shows that nobody has replaced the bytes.
            let needsTLS =
                file.checksum?.detectsForgery != true && file.locations.contains { $0.url.scheme == .https }
            let urls = file.locations.map(\.url).filter { !needsTLS || $0.scheme == .https }
            guard let first = urls.first else { return nil }
            let mirrors = urls.dropFirst()
            let options = DownloadOptions(
                checksum: file.checksum, mirrors: Array(mirrors.prefix(DownloadOptions.mirrorLimit)),
                expectedByteCount: file.byteCount)
            return Download(name: file.name, url: first, options: options)
        }
    }
}

/// The reason why a Metalink document cannot be used.
public struct MetalinkError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason, with the position in the document.
    public let message: String

    init(_ message: String) { self.message = message }

    /// The same as ``message``.
    public var description: String { message }
}

/// The files of a document whose events arrive one after the other. Elements of other namespaces are ignored, and so
/// are those at a place where they have no meaning.
private struct MetalinkDocument {
    private static let namespace = "urn:ietf:params:xml:ns:metalink"
    /// The hash functions by their names in the IANA registry, the strongest first.
    private static let functions: [(name: String, algorithm: DigestSink.Algorithm)] = [
        ("sha-512", .sha512), ("sha-384", .sha384), ("sha-256", .sha256), ("sha-1", .sha1), ("md5", .md5),
    ]
    /// The maximum length of an element's text in bytes: 64 KiB.
    private static let textLimit = 64 << 10

    private(set) var files: [Metalink.File] = []
    /// The open elements; `nil` for one of another namespace.
    private var path: [String?] = []
    private var attributes: [XMLAttribute] = []
    private var text = ""
    private var entryCount = 0

    mutating func append(_ event: XMLEvent) throws(MetalinkError) {
        switch event {
        case .start(let start):
            let isOwn = start.name.namespace == MetalinkDocument.namespace
            guard !path.isEmpty || isOwn && start.name.local == "metalink" else {
                throw MetalinkError("the document is not a Metalink 4 document (RFC 5854)")
            }
            path.append(isOwn ? start.name.local : nil)
            if path == ["metalink", "file"] {
                try count()
                files.append(Metalink.File(name: MetalinkDocument.safeName(start["name"] ?? "")))
            }
            if isInFile { (attributes, text) = (start.attributes, "") }
        case .text(let piece) where isInFile:
            guard text.utf8.count + piece.utf8.count <= MetalinkDocument.textLimit else {
                throw MetalinkError("an element has more than \(MetalinkDocument.textLimit) bytes of text")
            }
            text += piece
        case .end:
            if isInFile, let name = path.last { try endElement(name) }
            if path == ["metalink", "file"], let last = files.indices.last {
                // URLs of the same priority remain in document order.
                let ordered = files[last].locations.enumerated().sorted {
                    ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset)
                }
                files[last].locations = ordered.map(\.element)
            }
            path.removeLast()
        case .declaration, .doctype, .text, .comment, .instruction: break
        }
    }

    /// Whether the innermost element is a child of a file.
    private var isInFile: Bool { path.count == 3 && path[0...1] == ["metalink", "file"] }

    /// Makes a name safe, also as an argument of a command, whose options begin with a dash.
    private static func safeName(_ proposed: String) -> String {
        var name = SafeFilename(proposed)?.text ?? ""
        while name.utf8.first == UInt8(ascii: "-") {
            name = SafeFilename(String(name.unicodeScalars.dropFirst()))?.text ?? ""
        }
        return name.isEmpty ? "download" : name
    }

    private mutating func count() throws(MetalinkError) {
        entryCount += 1
        guard entryCount <= Metalink.entryLimit else {
            throw MetalinkError("the document has more than \(Metalink.entryLimit) files and URLs")
        }
    }

    private func attribute(_ name: String) -> String? { attributes.first { $0.name == XMLName(name) }?.value }

    private mutating func endElement(_ name: String?) throws(MetalinkError) {
        guard let last = files.indices.last else { return }
        let value = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        switch name {
        case "size": files[last].byteCount = files[last].byteCount ?? UInt64(value)
        case "hash":
            guard let function = MetalinkDocument.functions.firstIndex(where: { $0.name == attribute("type") }) else {
                return
            }
            let algorithm = MetalinkDocument.functions[function].algorithm
            guard let checksum = try? Checksum(algorithm, hexadecimal: value) else {
                throw MetalinkError("the \(algorithm.rawValue) hash of “\(files[last].name)” has a wrong length")
            }
            if let present = files[last].checksum {
                let rank = MetalinkDocument.functions.firstIndex { $0.algorithm == present.algorithm } ?? 0
                guard rank >= function else { return }
                guard rank > function || present == checksum else {
                    throw MetalinkError("“\(files[last].name)” has two different hashes")
                }
            }
            files[last].checksum = checksum
        case "url":
            try count()
            guard let url = try? HTTPURL(value) else { return }
            let priority = attribute("priority").flatMap { Int($0) }.flatMap { (1...999_999).contains($0) ? $0 : nil }
            let country = attribute("location").flatMap { text in
                text.utf8.count == 2 && text.utf8.allSatisfy { (0x61...0x7A).contains($0) } ? text : nil
            }
            files[last].locations.append(
                Metalink.Location(url: url, priority: priority ?? 999_999, country: country))
        default: break
        }
    }
}
