import MartletTestSupport

/// The system's shell.
enum Shell {
    /// Runs a script with `sh` and returns its output.
    static func output(_ script: String) async throws -> [UInt8] {
        try await PipedProcess.run {
            let process = try PipedProcess.start(["/bin/sh", "-c", script])
            let bytes = process.readToEnd()
            _ = process.end()
            return bytes
        }
    }
}
