import MartletClient
import MartletStorage
import MartletTransport

/// Reads files that are bodies, to tell whether they are what they were.
struct FrozenBodyReader: Sendable {
    /// By what a file is known that was read already: as long as this is the same, so are its bytes.
    struct Stamp: Hashable, Sendable {
        let identity: UInt64
        let byteCount: UInt64
        let modificationTime: Int64
    }

    private static let pieceByteCount = 256 * 1024

    let files: any FileSystem

    /// That this machine's OpenSSL has no SHA-256.
    static var noDigest: HTTPError {
        HTTPError(
            .systemFailed, phase: .preparing, message: "this machine's OpenSSL does not compute SHA-256")
    }

    /// What a file is. Blocks as long as it is read.
    func mark(of path: String) throws(HTTPError) -> (mark: FrozenBody.FileMark, stamp: Stamp) {
        guard let digest = try? MessageDigest(.sha256) else { throw FrozenBodyReader.noDigest }
        var byteCount: UInt64 = 0
        let stamp: Stamp
        do throws(StorageError) {
            let file = try files.open(path, for: .reading)
            stamp = try FrozenBodyReader.stamp(try files.status(of: file), path)
            while true {
                let piece = try files.readSome(
                    file, limit: FrozenBodyReader.pieceByteCount, at: byteCount)
                if piece.isEmpty { break }
                digest.update(piece.span)
                byteCount += UInt64(piece.count)
            }
        } catch {
            throw HTTPError(storing: error)
        }
        guard let sum = try? digest.finish() else { throw FrozenBodyReader.noDigest }
        return (FrozenBody.FileMark(byteCount: byteCount, digest: sum), stamp)
    }

    /// Whether a file is what it was. Blocks.
    /// - Parameter known: What it looked like when that was found out last; where it looks the same it is not read again.
    /// - Returns: What it looks like; `nil` where it is not what it was, or not there.
    /// - Throws: Where it cannot be read just now.
    func check(
        _ path: String, _ mark: FrozenBody.FileMark, known: Stamp?
    ) throws(HTTPError) -> Stamp? {
        let stamp: Stamp
        do throws(StorageError) {
            stamp = try FrozenBodyReader.stamp(try files.status(at: path), path)
        } catch {
            // Gone, or something else in its place.
            if error.isMissingFile || error.operation == "open" { return nil }
            throw HTTPError(storing: error)
        }
        guard stamp.byteCount == mark.byteCount else { return nil }
        if stamp == known { return stamp }
        let (found, read) = try self.mark(of: path)
        return found == mark ? read : nil
    }

    private static func stamp(_ status: FileStatus, _ path: String) throws(StorageError) -> Stamp {
        guard status.kind == .file else { throw StorageError(operation: "open", path: path, code: 22) }
        return Stamp(
            identity: status.identity, byteCount: status.byteCount,
            modificationTime: status.modificationTime)
    }
}
