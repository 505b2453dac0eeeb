import Martlet
import Testing

@testable import MartletCLI

@Suite("Mistakes on a command line")
struct UsageErrorTests {
    @Test(
        "A mistake is reported with the option, the value and a remedy",
        arguments: [
            (["--hedaer", "a: b"], "option --hedaer: is unknown; did you mean --header?"),
            (["--no-locaton"], "option --no-locaton: is unknown"),
            (["--max-redir", "3"], "option --max-redir: is unknown; did you mean --max-redirs?"),
            (["-o"], "option -o: needs a value: FILE"), (["--silent=yes"], "option --silent: takes no value"),
            (["--http2=yes"], "option --http2: HTTP/2, HTTP/3 and HTTP/0.9 are not supported"),
            (["--retry", "x"], "option --retry: “x” is not a number"),
            (["-m", "soon"], "option -m: “soon” is not a number of seconds"),
            (["--max-time", "soon"], "option --max-time: “soon” is not a number of seconds"),
            (["--limit-rate", "2X"], "option --limit-rate: “2X” is not a number of bytes"),
            (["-H", "no colon", "h"], "option -H: “no colon” has no colon: 'Name: value'"),
            (["--progress", "no"], "option --progress: “no” is not one of auto, bar, plain, json, none"),
            (["--tls-max", "1.1"], "option --tls-max: “1.1” is not one of 1.2, 1.3, default"),
            (["--cert-type", "ENG"], "option --cert-type: “ENG” is not one of PEM, DER, P12"),
            (["--cache", ""], "option --cache: needs a directory"),
            (["--next"], "option --next: needs a URL before it"),
            (["-F", "f=@a,b", "h"], "option -F: “f=@a,b”: several files need several -F; quote a name with a comma"),
            (["-o", "a", "-o", "b", "h"], "more options -o and -O (2) than URLs (1): give one for each"),
            (["--offline", "h"], "option --offline: needs --cache DIR"),
            (["ftp://me:secret@h/"], "“ftp://***@h/”: a URL's scheme"), (["http://a b/"], "“http://a b/”: a space"),
            (["http://me:pa/ss@h/"], "“http://***@h/”: a port"),
            (["http://user:hunter2/"], "“http://user:***/”: a port"),
            (["http://h:99999/?token=x"], "“http://h:99999/”: port 99999"),
            (["{a,b}"], "“{a,b}”: URL patterns with { } [ ] are not supported; -g allows these characters"),
        ])
    func messages(_ words: [String], _ message: String) async throws {
        let error = await #expect(throws: UsageError.self) {
            let groups = try GetScene.groups(words)
            _ = try await CachePlan(groups)
            _ = try TransferPlan.plans(for: groups[0], from: 0, caller: CredentialPlan())
        }
        #expect(error?.description.hasPrefix(message) == true, "\(error?.description ?? "none")")
    }

    @Test(
        "A file that is not UTF-8 is rejected by its name, unless it is data",
        arguments: [("-K", ""), ("-H", "@"), ("-w", "@")])
    func fileNotUTF8(_ option: String, _ mark: String) throws {
        let scene = try GetScene()
        try scene.write(Array("url: ".utf8) + [0xE9], to: "file")
        let file = scene.file("file")
        let error = #expect(throws: UsageError.self) { try GetScene.groups([option, mark + file]) }
        #expect(error?.description == "option \(option): “\(file)” is not UTF-8" && error?.status == .usage)
        #expect(try GetScene.groups(["-d", "@\(file)"])[0].data == [.data("@\(file)")])
    }

    @Test("Header fields that HTTPFields cannot hold are rejected", arguments: ["X: 1", "X;"])
    func tooManyFields(_ line: String) throws {
        let scene = try GetScene()
        try scene.write(String(repeating: "\(line)\n", count: 65_535), to: "lines")
        let group = try GetScene.groups(["-H", "@\(scene.file("lines"))", "http://h/"])[0]
        let error = #expect(throws: UsageError.self) {
            try TransferPlan.plans(for: group, from: 0, caller: CredentialPlan())
        }
        #expect(error?.description == "option -H: the header field “X” is one of more than 10000")
        #expect(error?.status == .usage)
    }

    @Test("A long option accepts its value after an equals sign")
    func equalsSign() throws {
        let group = try GetScene.groups(["--header=A: b=c", "--user-agent=", "--max-time=3", "http://h/"])[0]
        #expect(group.headerLines == ["A: b=c"] && group.userAgent == "" && group.totalTimeout == .seconds(3))
        #expect(group.urls == ["http://h/"])
    }

    @Test(
        "Every option in the help has a plain description: a capital letter first, no period last, at most 80 columns")
    func descriptions() {
        for command in MartletCommand.wordsCommands {
            for option in command.options.listed {
                #expect(option.help.first?.isUppercase == true && option.help.last != ".", "--\(option.name)")
                #expect(option.help.count <= 80, "--\(option.name)")
            }
        }
    }

    @Test("help COMMAND prints the options of commands with options like those of get")
    func help() {
        for command in MartletCommand.wordsCommands {
            #expect(HelpText.text(for: ["help"] + command.path)?.hasPrefix("USAGE: martlet") == true)
        }
    }
}
