import Foundation

/// The files that every real server serves, and their contents.
enum Site {
    /// The content of `/hello.txt`: 20 bytes.
    static let hello = "Hello from the wire\n"
    /// The content of `/data.json`.
    static let json = #"{"name":"martlet","legs":0}"#
    /// The content of `/lines.txt`: about 140 KB of numbered lines, which compress well.
    static let lines = (1...10_000).map { "line \($0) of 10000" }.joined(separator: "\n") + "\n"
    /// The content of `/bytes.bin`: 1 MiB in 4-byte words, each of them its own offset.
    static let bytes = (0..<1_048_576).map { offset in
        UInt8(truncatingIfNeeded: (offset / 4) >> (24 - 8 * (offset % 4)))
    }

    /// Writes the files and an empty `/empty.txt` to the directory `site`, and returns its path. All were last modified
    /// on 14 November 2023.
    static func write(in directory: TemporaryDirectory) throws -> String {
        let site = try directory.makeDirectory("site")
        try directory.write(hello, to: "site/hello.txt")
        try directory.write(json, to: "site/data.json")
        try directory.write(lines, to: "site/lines.txt")
        try directory.write("", to: "site/empty.txt")
        try InputFile.write(Data(bytes), to: "\(site)/bytes.bin")
        // Apache's ETags are weak for files that have changed within the second.
        let modified = Date(timeIntervalSince1970: 1_700_000_000)
        for name in try FileManager.default.contentsOfDirectory(atPath: site) {
            let file = "\(site)/\(name)"
            try FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: file)
        }
        return site
    }
}
