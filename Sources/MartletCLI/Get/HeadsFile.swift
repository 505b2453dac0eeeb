import SystemPackage

/// The file of `-D`; `-` is standard output.
struct HeadsFile: Sendable {
    let name: String

    init(_ name: String) {
        self.name = name
    }

    /// Makes the file, or empties it, for the heads of a group.
    func begin() async throws(UsageError) {
        guard name != "-" else { return }
        do throws(OutputError) {
            try await write([], .truncate)
        } catch {
            throw UsageError("option -D: \(error)", status: .writeFailed)
        }
    }

    /// Writes heads at the end of what is there.
    func write(_ bytes: [UInt8]) async throws(OutputError) {
        guard name != "-" else { return try await Console.write(bytes) }
        try await write(bytes, .append)
    }

    private func write(_ bytes: [UInt8], _ mode: FileDescriptor.OpenOptions) async throws(OutputError) {
        let name = name
        let result = await Console.run { () -> Result<Void, OutputError> in
            do {
                let file = try FileDescriptor.open(
                    FilePath(name), .writeOnly, options: [.create, mode, .closeOnExec],
                    permissions: [.ownerReadWrite, .groupRead, .otherRead])
                try file.closeAfter { _ = try file.writeAll(bytes) }
                return .success(())
            } catch {
                return .failure(OutputError(name: name, error))
            }
        }
        try result.get()
    }
}
