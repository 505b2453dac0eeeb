import FoundationEssentials
import MartletTransport
import SystemPackage

/// An open file of the test origin; every call runs on a worker thread, since file systems block.
struct ServedFile: Sendable {
    private let descriptor: FileDescriptor
    private let path: FilePath

    /// Opens a file for reading.
    static func open(_ path: FilePath) async throws(OriginError) -> ServedFile {
        let result = await BlockingWorkers.shared.run { () -> Result<FileDescriptor, OriginError> in
            do {
                return .success(try FileDescriptor.open(path, .readOnly, options: .closeOnExec))
            } catch {
                return .failure(.file("\(path): \(error)"))
            }
        }
        return ServedFile(descriptor: try result.get(), path: path)
    }

    /// Reads at an offset.
    /// - Returns: Fewer bytes than asked for near the end, none at it.
    func read(at offset: UInt64, count: Int) async throws(OriginError) -> [UInt8] {
        let (descriptor, path) = (descriptor, path)
        let result = await BlockingWorkers.shared.run { () -> Result<[UInt8], OriginError> in
            do {
                let bytes = try unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                    initialized = try unsafe descriptor.read(
                        fromAbsoluteOffset: Int64(clamping: offset),
                        into: UnsafeMutableRawBufferPointer(buffer))
                }
                return .success(bytes)
            } catch {
                return .failure(.file("\(path): \(error)"))
            }
        }
        return try result.get()
    }

    /// Closes the file.
    func close() async {
        let descriptor = descriptor
        await BlockingWorkers.shared.run {
            // A descriptor opened for reading has nothing to lose at its close.
            try? descriptor.close()
        }
    }
}
