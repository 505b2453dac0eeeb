/// A form in its final order: bytes in memory, and between them bodies that are read while they are sent.
package struct MultipartContent: Sendable {
    private enum Segment: Sendable {
        case bytes([UInt8])
        /// A body that is read while it is sent.
        case body(HTTPBody, part: String)
    }

    /// The maximum size in bytes of a part that is copied into a segment with the parts around it.
    private static let smallByteCount = 64 * 1024
    /// The parts, for descriptions of the form.
    package let parts: [MultipartForm.Part]
    private let boundary: MultipartBoundary
    private let segments: [Segment]

    init(parts: [MultipartForm.Part], boundary: MultipartBoundary) {
        var segments: [Segment] = []
        var pending: [UInt8] = []
        for part in parts {
            pending += boundary.opening + part.head + [0x0D, 0x0A]
            switch part.body.storage {
            case .none, .failure: break
            case .bytes(let bytes):
                if bytes.count <= MultipartContent.smallByteCount {
                    pending += bytes
                } else {
                    segments += [.bytes(pending), .bytes(bytes)]
                    pending = []
                }
            case .file, .stream, .once, .multipart, .value:
                segments += [.bytes(pending), .body(part.body, part: part.name)]
                pending = []
            }
            pending += [0x0D, 0x0A]
        }
        segments.append(.bytes(pending + boundary.closing))
        (self.segments, self.parts, self.boundary) = (segments, parts, boundary)
    }

    /// Whether any part is a value that is not encoded yet.
    var holdsValues: Bool { parts.contains(where: \.holdsValue) }

    /// Returns the form with its values encoded; if a value cannot be encoded, the first error.
    func encoded(by encoder: BodyEncoder) -> HTTPBody.Storage {
        let parts = parts.map { part in
            MultipartForm.Part(
                name: part.name, head: part.head, body: part.body.encoded(by: encoder), filename: part.filename)
        }
        for part in parts { if case .failure = part.body.storage { return part.body.storage } }
        return .multipart(MultipartContent(parts: parts, boundary: boundary))
    }

    /// The whole form, if it is one segment in memory.
    var bytes: [UInt8]? { if segments.count == 1, case .bytes(let bytes) = segments[0] { bytes } else { nil } }

    /// The bodies that are read while they are sent.
    private var bodies: [HTTPBody] { segments.compactMap { if case .body(let body, _) = $0 { body } else { nil } } }

    /// The condition under which the form can be sent again, which depends on its parts.
    var replay: HTTPBody.Replay {
        let replays = bodies.map(\.replay)
        if replays.contains(.once) { return .once }
        return replays.contains(.restartable) ? .restartable : .replayable
    }

    /// Whether the bodies that can be read only once are unread.
    var isWhole: Bool { bodies.allSatisfy(\.isWhole) }

    /// Takes back the bodies that can be read only once.
    /// - Returns: Whether these bodies are unread.
    func rewind() -> Bool { bodies.reduce(true) { $1.rewind() && $0 } }

    /// The length in bytes, if it is known without opening the files.
    var length: UInt64? {
        segments.reduce(0) { sum, segment in
            switch segment {
            case .bytes(let bytes): MultipartContent.sum(sum, UInt64(bytes.count))
            case .body(let body, _): MultipartContent.sum(sum, body.length)
            }
        }
    }

    /// Opens the form to be sent once. One job on a worker thread reads the lengths of all files and keeps none of them
    /// open: a form of many files uses one descriptor at a time.
    /// - Throws: The errors of ``HTTPBody/open()``. If a part was already read, ``HTTPError/underlying`` is a
    ///   ``MultipartError/partNotReplayable(part:)``.
    func open() async throws(HTTPError) -> (source: any RequestBodySource, length: UInt64?) {
        var files = try await measure()[...]
        var stretches: [MultipartSource.Stretch] = []
        var total: UInt64? = 0
        for segment in segments {
            let (stretch, length) = try await stretch(of: segment, &files)
            stretches.append(stretch)
            total = MultipartContent.sum(total, length)
        }
        return (MultipartSource(stretches), total)
    }

    private func stretch(of segment: Segment, _ files: inout ArraySlice<UInt64>) async throws(HTTPError) -> (
        MultipartSource.Stretch, UInt64?
    ) {
        switch segment {
        case .bytes(let bytes): return (.bytes(bytes), UInt64(bytes.count))
        case .body(let body, let part):
            if let path = body.file {
                let length = files.popFirst() ?? 0
                return (.file(path, length: length), length)
            }
            if case .once(_, let once) = body.storage, !once.isWhole {
                let error = MultipartError.partNotReplayable(part: part)
                throw HTTPError(.bodyNotReplayable, phase: .preparing, message: "\(error)", underlying: error)
            }
            let (source, length) = try await body.open()
            return (.source(source, length: length, part: part), length)
        }
    }

    /// Returns the lengths of all files, in order.
    private func measure() async throws(HTTPError) -> [UInt64] {
        let paths = bodies.compactMap { $0.file?.string }
        guard !paths.isEmpty else { return [] }
        do throws(StorageError) {
            return try await BlockingThreadPool.shared.run { () throws(StorageError) in
                try paths.map { path throws(StorageError) in try FileReader(path: path).byteCount }
            }
        } catch { throw HTTPError(storing: error) }
    }

    private static func sum(_ total: UInt64?, _ length: UInt64?) -> UInt64? {
        guard let total, let length else { return nil }
        let (sum, overflow) = total.addingReportingOverflow(length)
        return overflow ? nil : sum
    }
}

/// A source that returns a form segment by segment. Each file is opened when it is needed and closed after it.
actor MultipartSource: RequestBodySource {
    /// A segment of the form.
    enum Stretch: Sendable {
        case bytes([UInt8])
        /// A file that had this length when the form was opened.
        case file(FilePath, length: UInt64)
        /// A source, and the length that it must have, if it is known.
        case source(any RequestBodySource, length: UInt64?, part: String)
    }

    private var stretches: ArraySlice<Stretch>
    private var file: FileSource?
    /// The number of bytes that the current segment has returned.
    private var given: UInt64 = 0

    init(_ stretches: [Stretch]) { self.stretches = stretches[...] }

    /// Returns the next bytes; `nil` at the end.
    /// - Throws: ``MultipartError``, ``StorageError``, or any error of a part's source.
    func next() async throws -> [UInt8]? {
        while let stretch = stretches.first {
            switch stretch {
            case .bytes(let bytes):
                advance()
                if !bytes.isEmpty { return bytes }
            case .file(let path, let length):
                let source = try await opened(path, length)
                if let piece = try await source.next() {
                    given += UInt64(piece.count)
                    guard given <= length else { throw MultipartError.fileChanged(path, expected: length) }
                    return piece
                }
                guard given == length else { throw MultipartError.fileChanged(path, expected: length) }
                advance()
            case .source(let source, let length, let part):
                if let piece = try await source.next() {
                    given += UInt64(piece.count)
                    if let length, given > length { throw MultipartError.lengthMismatch(part: part, expected: length) }
                    if !piece.isEmpty { return piece }
                } else {
                    if let length, given != length { throw MultipartError.lengthMismatch(part: part, expected: length) }
                    advance()
                }
            }
        }
        return nil
    }

    private func advance() {
        stretches = stretches.dropFirst()
        file = nil
        given = 0
    }

    private func opened(_ path: FilePath, _ length: UInt64) async throws -> FileSource {
        if let file { return file }
        let source = try await FileSource.open(path)
        guard source.byteCount == length else { throw MultipartError.fileChanged(path, expected: length) }
        file = source
        return source
    }
}
