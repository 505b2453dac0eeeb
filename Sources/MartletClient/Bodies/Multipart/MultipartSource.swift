import MartletConnections
import MartletStorage
import MartletTransport
import SystemPackage

/// Gives out a form, stretch by stretch. A file is opened when its turn comes and closed behind it.
actor MultipartSource: BodySource {
    /// A stretch of the form.
    enum Stretch: Sendable {
        /// Bytes in memory.
        case bytes([UInt8])
        /// A file that had this length when the form was opened.
        case file(FilePath, length: UInt64)
        /// A source, and the length that it must have, if any.
        case source(any BodySource, length: UInt64?, part: String)
    }

    private var stretches: ArraySlice<Stretch>
    private var file: FileSource?
    /// Bytes that the stretch in hand has given.
    private var given: UInt64 = 0

    init(_ stretches: [Stretch]) {
        self.stretches = stretches[...]
    }

    /// The next bytes; `nil` at the end.
    /// - Throws: ``MultipartError``, ``StorageError``, or what a part's source threw.
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
                    if let length, given > length {
                        throw MultipartError.lengthMismatch(part: part, expected: length)
                    }
                    if !piece.isEmpty { return piece }
                } else {
                    if let length, given != length {
                        throw MultipartError.lengthMismatch(part: part, expected: length)
                    }
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
        let name = path.string
        let reader = try await BlockingWorkers.shared.run { () throws(StorageError) in
            try FileReader(path: name)
        }
        guard reader.byteCount == length else { throw MultipartError.fileChanged(path, expected: length) }
        let source = FileSource(reader)
        file = source
        return source
    }
}
