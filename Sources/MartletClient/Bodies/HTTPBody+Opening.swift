package import MartletConnections
import MartletStorage
import MartletTransport
package import SystemPackage

extension HTTPBody {
    /// The file it is; `nil` for another body.
    package var file: FilePath? {
        if case .file(let path) = storage { path } else { nil }
    }

    /// Opens it to be read once, without a request.
    /// - Returns: Where it comes from, and how long it is, where that is known.
    /// - Throws: An ``HTTPError``: `.fileFailed`, `.bodyNotReplayable`, `.invalidRequest`.
    package func open() async throws(HTTPError) -> (source: any BodySource, length: UInt64?) {
        switch storage {
        case .none: return (BytesSource([]), 0)
        case .bytes(let bytes): return (BytesSource(bytes), UInt64(bytes.count))
        case .stream(let length, let open): return (open(), length)
        case .once(let length, let once):
            guard let source = once.open() else {
                throw HTTPError(
                    .bodyNotReplayable, phase: .preparing,
                    message: "the body can be read only once, and was read before")
            }
            return (source, length)
        case .multipart(let content):
            do {
                return try await content.open()
            } catch {
                throw HTTPError(
                    error is StorageError ? .fileFailed : .bodyNotReplayable, phase: .preparing,
                    message: "\(error)", underlying: error)
            }
        case .file(let path):
            let name = path.string
            do throws(StorageError) {
                let file = try await BlockingWorkers.shared.run { () throws(StorageError) in
                    try FileReader(path: name)
                }
                return (FileSource(file), file.byteCount)
            } catch {
                throw HTTPError(storing: error)
            }
        case .failure(let error):
            throw HTTPError(
                .invalidRequest, phase: .preparing, message: "the body could not be encoded: \(error)",
                underlying: error)
        }
    }
}
