import MartletTestSupport

/// The shell of the system.
enum Shell {
    /// What a script prints, run by `sh`.
    static func output(_ script: String) async throws -> [UInt8] {
        try await PipedProcess.run {
            let process = try PipedProcess.start(["/bin/sh", "-c", script])
            let bytes = process.readToEnd()
            _ = process.end()
            return bytes
        }
    }
}
