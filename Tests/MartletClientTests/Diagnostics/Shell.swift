import Foundation
import MartletTransport

/// The shell of the system.
enum Shell {
    /// What a script prints, run by `sh` on a worker.
    static func output(_ script: String) async throws -> [UInt8] {
        let result = await BlockingWorkers.shared.run { () -> Result<[UInt8], any Error> in
            Result {
                let process = Process()
                process.executableURL = URL(fileURLWithPath: "/bin/sh")
                process.arguments = ["-c", script]
                let pipe = Pipe()
                process.standardOutput = pipe
                try process.run()
                let bytes = Array(pipe.fileHandleForReading.readDataToEndOfFile())
                process.waitUntilExit()
                return bytes
            }
        }
        return try result.get()
    }
}
