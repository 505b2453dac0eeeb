import Martlet
import Testing

@testable import MartletCLI

@Suite("Options of martlet download")
struct DownloadOptionTests {
    private func read(_ words: String...) throws(UsageError) -> TransferOptions {
        var reader = CommandLineParser(
            DownloadCommand.options)
        try reader.read(words)
        return reader.groups[0]
    }

    @Test(
        "The defaults are four segments, three files, two per host, resume, no overwriting, and redirects"
    )
    func defaults() throws {
        let group = try read("http://h/f")
        #expect(group.urls == ["http://h/f"])
        #expect(group.redirects.followsRedirects)
        let wish = group.download
        #expect(wish.options.segments == 4)
        #expect(wish.fileLimit == 3)
        #expect(wish.fileLimitPerHost == 2)
        #expect(wish.options.collision == .fail)
        #expect(wish.options.resumption == .automatic && wish.options.durability == .synced)
        #expect(wish.rate == nil && wish.options.checksum == nil && wish.stateDirectory == nil)
    }

    @Test("Each option of download sets its value")
    func own() throws {
        let digits = String(repeating: "0a", count: 32)
        let wish = try read(
            "--dir", "d", "-i", "a", "--input-file", "-", "--segments", "8", "--max-files", "5",
            "--max-per-host", "4", "--checksum", "SHA-256=\(digits)", "--limit-rate", "2M", "--restart",
            "--overwrite", "-R", "--state", "s", "--stall-timeout", "7", "--retry", "0", "--retry-delay", "2",
            "--no-sync"
        ).download
        #expect(wish.directory == "d")
        #expect(wish.lists == ["a", "-"])
        #expect(wish.options.segments == 8 && wish.fileLimit == 5 && wish.fileLimitPerHost == 4)
        #expect(wish.options.checksum?.description == "sha256=\(digits)")
        #expect(wish.rate == 2 << 20)
        #expect(
            wish.options.resumption == .restart && wish.options.collision == .overwrite
                && wish.options.preservesModificationTime)
        #expect(wish.stateDirectory == "s" && wish.options.stallTimeout == .seconds(7))
        #expect(wish.options.durability == .unsynced)
        #expect(wish.options.retry.maximumRetries == 0 && wish.options.retry.initialDelay == .seconds(2))
    }

    @Test("The last of several exclusive options counts")
    func last() throws {
        #expect(try read("--restart", "--continue").download.options.resumption == .automatic)
        #expect(try read("--continue", "--resume-unverified").download.options.resumption == .unverified)
        #expect(try read("--rename", "--overwrite", "--fail-if-exists").download.options.collision == .fail)
        #expect(try read("--overwrite", "--rename").download.options.collision == .rename)
        #expect(try read("-R", "--no-remote-time").download.options.preservesModificationTime == false)
        #expect(try read("--no-location").redirects.followsRedirects == false)
    }

    @Test("Options of get for headers, credentials, TLS, proxies and timeouts are parsed the same way")
    func shared() throws {
        let group = try read(
            "-H", "A: b", "-A", "agent", "-u", "me:word", "-x", "http://proxy:1", "--cacert", "ca",
            "--connect-timeout", "5", "-m", "9", "-sSv4", "--max-redirs", "3", "-b", "a=b", "--unix-socket",
            "u")
        #expect(group.headerLines == ["A: b"])
        #expect(group.userAgent == "agent" && group.user == "me:word")
        #expect(group.proxy.address == "http://proxy:1" && group.authorityFile == "ca")
        #expect(group.connectTimeout == .seconds(5) && group.totalTimeout == .seconds(9))
        #expect(group.global.isSilent && group.global.showsErrors && group.global.isVerbose)
        #expect(group.session.happyEyeballs.families == .ipv4Only && group.redirects.limit == 3)
        #expect(group.cookies == ["a=b"] && group.session.unixSocketPath == "u")
    }

    @Test(
        "An invalid value is rejected, and the message names the option",
        arguments: [
            ["--segments", "0"], ["--segments", "65"], ["--segments", "many"], ["--max-files", "0"],
            ["--max-per-host", "-1"], ["--limit-rate", "fast"], ["--limit-rate", "9999999999999G"],
            ["--checksum", "crc32=00"], ["--checksum", "sha256=00"], ["--checksum", "sha256"],
            ["--checksum", "sha256=\(String(repeating: "zz", count: 32))"], ["--stall-timeout", "soon"],
            ["--retry", "-1"], ["--dir", ""], ["--state", ""], ["--progress", "no"],
        ])
    func senseless(_ words: [String]) throws {
        var reader = CommandLineParser(DownloadCommand.options)
        let error = try #require(throws: UsageError.self) { try reader.read(words) }
        #expect(error.status == .usage)
        #expect(error.description.hasPrefix("option \(words[0]): "), "\(error)")
    }

    @Test("A second checksum is rejected, because it applies to a single URL")
    func secondChecksum() throws {
        let digits = String(repeating: "00", count: 16)
        #expect(throws: UsageError.self) {
            try read("--checksum", "md5=\(digits)", "--checksum", "md5=\(digits)")
        }
    }

    @Test("-o - is rejected, and the message names the alternative")
    func standardOutput() throws {
        let error = try #require(throws: UsageError.self) { try read("-o", "-", "http://h/") }
        #expect(error.status == .usage)
        #expect(error.description.contains("martlet get URL"))
    }

    @Test("Every option of get is either supported or rejected by name")
    func all() throws {
        var rejectedCount = 0
        for option in OptionTable.all {
            let found = try #require(DownloadCommand.options[option.name], "--\(option.name)")
            guard case .rejected(let reason) = found.kind else { continue }
            rejectedCount += 1
            #expect(!reason.isEmpty)
            let error = try #require(throws: UsageError.self) { try read("--\(option.name)", "x") }
            #expect(error.status == .usage)
            #expect(error.description.hasPrefix("option --\(option.name): "))
        }
        #expect(rejectedCount > 100)
    }

    @Test(
        "Options that do not apply to downloads are rejected by their letter too",
        arguments: ["-X", "-d", "-F", "-T", "-G", "-I", "-O", "-J", "-D", "-w", "-r", "-C", "-Z"])
    func letters(_ letter: String) throws {
        let error = try #require(throws: UsageError.self) { try read(letter, "x") }
        #expect(error.description.hasPrefix("option \(letter): "))
        #expect(!error.description.contains("unknown"))
    }

    @Test("The letters of download win over those of get: -i is a list, -R the time")
    func ownLetters() throws {
        #expect(try read("-i", "list").download.lists == ["list"])
        #expect(try read("-R").download.options.preservesModificationTime)
    }

    @Test("The help lists each option of download, the JSON fields and the exit codes")
    func help() {
        let text = DownloadCommand.options.help
        for name in [
            "output", "dir", "input-file", "segments", "max-files", "max-per-host", "checksum", "limit-rate",
            "continue", "restart", "state", "fail-if-exists", "overwrite", "rename", "resume-unverified",
            "remote-time", "no-sync",
            "progress", "header", "user", "cacert", "proxy", "retry", "connect-timeout",
        ] { #expect(text.contains("--\(name)"), "\(name)") }
        for word in [
            "started", "restarted", "retrying", "verifying", "finished", "failed", "ended", "105", "out=",
        ] {
            #expect(text.contains(word), "\(word)")
        }
        #expect(!text.contains("--form") && !text.contains("--data"))
    }
}
