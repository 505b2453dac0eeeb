import SystemPackage

/// Files that options name; `-` is standard input.
enum InputFile {
    /// All that is in a file. Blocks.
    static func contents(of name: String) throws(UsageError) -> [UInt8] {
        do {
            if name == "-" { return try rest(of: .standardInput) }
            let file = try FileDescriptor.open(FilePath(name), .readOnly, options: .closeOnExec)
            defer { try? file.close() }
            return try rest(of: file)
        } catch {
            throw UsageError("could not read “\(name)”: \(error)", status: .readFailed)
        }
    }

    private static func rest(of file: FileDescriptor) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let piece = try DescriptorReading.read(file, atMost: 256 * 1024)
            if piece.isEmpty { return bytes }
            bytes += piece
        }
    }
}
