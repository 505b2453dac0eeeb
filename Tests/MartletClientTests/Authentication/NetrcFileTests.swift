import FoundationEssentials
import MartletAuthentication
import MartletCore
import MartletHosts
import Testing

@Suite("netrc files")
struct NetrcFileTests {
    private func found(_ text: String, _ host: String, _ login: String? = nil) throws -> String? {
        try NetrcFile(text).entry(forHost: host, login: login).map {
            "\($0.login ?? "-") \($0.password ?? "-")"
        }
    }

    @Test(
        "An entry is found in every layout of its words",
        arguments: [
            "machine example.com login jane password secret",
            "machine example.com\nlogin jane\npassword secret\n",
            "machine\texample.com\r\n\tlogin\tjane\r\n\tpassword\tsecret\r\n",
            "\n\n  machine EXAMPLE.com password secret login jane",
            "MACHINE example.com LOGIN jane PASSWORD secret",
            "# jane's\nmachine example.com # of hers\n  login jane # name\n  password secret",
            "machine \"example.com\" login \"jane\" password \"secret\"",
            "machine other login x password y machine example.com login jane password secret",
            "default login jane password secret",
            "machine other login x password y\ndefault\nlogin jane\npassword secret",
            "machine example.com login jane account extra password secret",
            "machine example.com unknown login jane password secret",
            "machine example.com password first password secret login jane",
            "macdef init\ncd /pub\nmachine example.com login eve password evil\n\nmachine example.com login jane password secret",
        ])
    func layouts(_ text: String) throws {
        #expect(try found(text, "example.com") == "jane secret")
    }

    @Test(
        "Quoted values may contain spaces, quotes and escapes",
        arguments: [
            (#"machine a login "jane doe" password "se\"cr\\et""#, #"jane doe se"cr\et"#),
            (#"machine a login j password "a\nb\rc\td\ee""#, "j a\nb\rc\tdee"),
            (#"machine a login j password """#, "j "),
            (#"machine a login j password "# + "#no#comment", "j #no#comment"),
            (#"machine a login j password a"b"#, #"j a"b"#),
            (#"machine a login j password a\b"#, #"j a\b"#),
            ("machine a login default password machine", "default machine"),
            ("machine a login j password p\u{E4}ss", "j p\u{E4}ss"),
        ])
    func values(_ text: String, _ expected: String) throws {
        #expect(try found(text, "a") == expected)
    }

    @Test("The first matching entry is used, and a default entry also hides the entries after it")
    func order() throws {
        let text =
            "machine a login one password 1\nmachine a login two password 2\nmachine b login three password 3"
        #expect(try found(text, "a") == "one 1")
        #expect(try found(text, "b") == "three 3")
        #expect(try found(text, "c") == nil)
        #expect(try found("default login d password 0\n" + text, "b") == "d 0")
        #expect(try found(text + "\ndefault login d password 0", "b") == "three 3")
    }

    @Test("With a login given, the entry with exactly that login is found")
    func byLogin() throws {
        let text = """
            machine github.com
            password weird
            password firstone
            login daniel

            machine github.com

            machine github.com
            login debbie

            machine github.com
            password weird
            password "second"
            login debbie
            """
        #expect(try found(text, "github.com", "debbie") == "debbie second")
        #expect(try found(text, "github.com", "daniel") == "daniel firstone")
        #expect(try found(text, "github.com", "Daniel") == nil)
        #expect(try found(text, "github.com") == "daniel firstone")
        #expect(try found("machine a password p", "a", "anyone") == "- p")
        #expect(try found("machine a login b", "a", "b") == "b -")
    }

    @Test("A host matches only an equal name, without regard to case")
    func hosts() throws {
        let text = "machine example.com login j password p\nmachine ::1 login six password 6"
        for host in ["www.example.com", "com", "example.com.", "example.com.evil.net", "xexample.com", ""] {
            #expect(try found(text, host) == nil, "\(host)")
        }
        #expect(try found(text, "Example.COM") == "j p")
        #expect(try found(text, "::1") == "six 6")
    }

    @Test(
        "A malformed file is an error that contains the line number and no secret",
        arguments: [
            ("machine", 1, NetrcError.Code.missingValue),
            ("machine a\nlogin j\npassword", 3, .missingValue),
            ("machine a login j\n\npassword \"hunter2", 3, .unterminatedQuote),
            ("machine a login j password \"hunter2\nx\"", 1, .unterminatedQuote),
            ("machine a login j password \"hunter2\\", 1, .unterminatedQuote),
            ("machine a login j\npassword hunter2\u{7F}", 2, .controlCharacter),
            ("machine a\n\u{0}", 2, .controlCharacter),
        ])
    func malformed(_ text: String, _ line: Int, _ code: NetrcError.Code) throws {
        do throws(NetrcError) {
            _ = try NetrcFile(text)
            Issue.record("it was understood")
        } catch {
            #expect(error.line == line && error.code == code)
            #expect("\(error)".hasPrefix("netrc, line \(line): ") && !"\(error)".contains("hunter2"))
        }
    }

    @Test("Invalid UTF-8 and a file above the size limit are errors")
    func bytes() {
        #expect(throws: NetrcError.self) {
            try NetrcFile(bytes: Array("machine a login j password ".utf8) + [0xFF])
        }
        #expect(throws: NetrcError.self) {
            try NetrcFile(bytes: Array(repeating: 0x20, count: NetrcFile.byteLimit + 1))
        }
    }

    @Test("An empty file, comments and words outside of an entry give no entries")
    func nothing() throws {
        for text in [
            "", "\n\n", "# machine a login b password c", "login a password b", "macdef x\nmachine a",
        ] {
            #expect(try NetrcFile(text).entry(forHost: "a") == nil, "\(text)")
        }
    }

    @Test("A macro ends with an empty line or at the end of the file")
    func macros() throws {
        let text =
            "machine a login j password p\nmacdef m\nmachine b login x password y\n  \nmachine c login k password q"
        #expect(try NetrcFile(text).entries.map(\.machine) == ["a", "c"])
        #expect(try NetrcFile(text).entries.map(\.line) == [1, 5])
    }

    @Test("A file that others can read or write is loaded with a warning")
    func files() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/netrc"
        try Data("machine a login j password p".utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        let open = try await NetrcFile.load(FilePath(path))
        #expect(open.warnings == [.isReadableByOthers] && open.entries.count == 1)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        let kept = try await NetrcFile.load(FilePath(path))
        #expect(kept.warnings.isEmpty)
        try FileManager.default.setAttributes([.posixPermissions: 0o622], ofItemAtPath: path)
        #expect(try await NetrcFile.load(FilePath(path)).warnings == [.isWritableByOthers])
        await #expect(throws: StorageError.self) { try await NetrcFile.load(FilePath(path + "x")) }
        await #expect(throws: StorageError.self) { try await NetrcFile.load(FilePath(directory.path)) }
    }
}
