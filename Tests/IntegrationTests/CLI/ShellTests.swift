import Testing

@Suite("Shell completions")
struct ShellTests {
    /// The replacements that bash offers for the last of these words.
    private func completions(_ words: String...) async throws -> [String] {
        let script = """
            source <("$1" completions bash) || exit 90
            shift
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            _martlet
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let run = try await Program.run(
            "bash", ["-c", script, "bash", Program.path, "martlet"] + words, input: [], in: nil)
        #expect(run.status == 0, "\(run.errors)")
        return run.text.split(separator: "\n").map(String.init)
    }

    @Test("bash completes commands, their arguments, and the options of each")
    func bash() async throws {
        #expect(try await completions("down") == ["download"])
        #expect(try await completions("queue", "a") == ["add"])
        #expect(try await completions("download", "--seg") == ["--segments"])
        #expect(try await completions("queue", "add", "--la") == ["--lane"])
        #expect(try await completions("http://localhost/", "--retry-d") == ["--retry-delay"])
        #expect(try await completions("--parallel-m") == ["--parallel-max"])
        // The shell itself completes files.
        #expect(try await completions("http://localhost/", "-o", "fi").isEmpty)
    }

    @Test("There is a script for each shell, and another shell is an error")
    func shells() async throws {
        for shell in ["bash", "zsh", "fish"] {
            let run = try await Program.run("completions", shell)
            #expect(run.status == 0 && run.text.contains("segments"))
        }
        #expect(try await Program.run("completions", "tcsh").status == 2)
        #expect(try await Program.run("manual").text.hasPrefix(".TH MARTLET 1 "))
    }
}
