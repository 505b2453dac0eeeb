import SystemPackage

/// The file of `-D`; `-` is standard output.
struct HeadsFile: Sendable {
    let name: String

    init(_ name: String) {
        self.name = name
    }

    /// Writes heads, at the end of what is there, or in its place.
    func write(_ bytes: [UInt8], anew: Bool) async throws(OutputError) {
        guard name != "-" else {
            try await Console.write(bytes)
            return
        }
        let name = name
        let result = await Console.run { () -> Result<Void, OutputError> in
            do {
                let file = try FileDescriptor.open(
                    FilePath(name), .writeOnly, options: [.create, anew ? .truncate : .append, .closeOnExec],
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
