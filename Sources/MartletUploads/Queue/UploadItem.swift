import Glibc
import MartletCore

/// An upload of a manager, as it is stored across processes.
struct UploadItem: Sendable {
    /// The stored state.
    enum Stage: Sendable {
        /// The upload is queued, or ran when the process ended.
        case waiting
        case paused
        /// The upload was cancelled, and its upload URL is still to be deleted.
        case cancelled
        case finished(UploadResult)
        case failed(HTTPError)
    }

    var id = UploadID(0)
    /// The position in the queue, lower numbers first.
    var order: UInt64 = 0
    var stage = Stage.waiting
    /// The URL with which the upload was added. Its user info is not written to disk.
    let url: HTTPURL
    /// The absolute path of the file.
    let path: String
    var file: UploadFileIdentity
    /// The options. Secret fields are not written to disk.
    var options: UploadOptions
    var checkpoint = UploadMachine.Checkpoint()

    /// The host and the port of the URL, by which uploads are counted.
    var host: String { "\(url.host):\(url.port)" }

    var plan: UploadMachine.Plan {
        UploadMachine.Plan(
            byteCount: file.byteCount, given: options.protocol, isRepeatable: options.isRepeatable,
            chunkByteCount: options.chunkSize.map { UInt64(max(1, $0.bytes)) }, retry: options.retry)
    }

    /// The names of the fields that are neither stored nor sent to other origins.
    static func secretNames(_ options: UploadOptions) -> Set<HTTPField.Name> {
        options.secretFields.union([.authorization, .proxyAuthorization, .cookie, .setCookie])
    }
}

/// The identity of a file's content, by which a change is detected. It has no device number: a reboot or a remount may
/// change that of the same file.
struct UploadFileIdentity: Hashable, Sendable {
    var byteCount: UInt64
    /// The modification time in nanoseconds since 1970.
    var modificationTime: Int64
    /// The inode number of the file.
    var number: UInt64

    init(byteCount: UInt64, modificationTime: Int64, number: UInt64) {
        (self.byteCount, self.modificationTime, self.number) = (byteCount, modificationTime, number)
    }

    /// Reads the identity of a regular file; symbolic links are followed. Blocks: call it on a worker.
    init(path: String) throws(StorageError) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw StorageError(operation: "stat", path: path, code: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw StorageError(
                operation: "open", path: path, code: status.st_mode & S_IFMT == S_IFDIR ? EISDIR : EINVAL)
        }
        byteCount = UInt64(max(0, status.st_size))
        modificationTime = Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
        number = UInt64(status.st_ino)
    }

    /// Reads the identity of a file on a worker.
    static func of(_ path: String) async throws(HTTPError) -> UploadFileIdentity {
        do throws(StorageError) {
            return try await BlockingThreadPool.shared.run { () throws(StorageError) in
                try UploadFileIdentity(path: path)
            }
        } catch { throw HTTPError(storing: error) }
    }
}
