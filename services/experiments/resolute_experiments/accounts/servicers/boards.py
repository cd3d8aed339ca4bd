"""Handlers of BoardsService."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import boards_service_pb2 as pb2
from resolute.api.experiments.v1.boards_service_pb2_grpc import BoardsServiceServicer
from resolute.contracts.times import to_timestamp
from resolute_experiments.accounts.names import check_label
from resolute_experiments.accounts.store import boards, projects
from resolute_experiments.accounts.store.boards import Board, Content
from resolute_experiments.context import ServiceContext
from resolute_experiments.store import audit
from resolute_experiments.store import schema as tables
from resolute_experiments.store.schema import IDEMPOTENCY_KEYS
from resolute_serving.context import actor
from resolute_serving.filters import any_of, seen_in
from resolute_serving.validation import check_length, invalid, required_id

_PATH_LENGTH = 4000
_REPORT_LENGTH = 20_000


class BoardsServicer(BoardsServiceServicer):
    """The handlers of boards: shared views of a project.

    Args:
        core: The context that all handlers share.
    """

    def __init__(self, core: ServiceContext) -> None:
        self._core = core

    async def SetBoard(self, request: pb2.SetBoardRequest, context: Any) -> pb2.SetBoardResponse:
        """Makes a board, or a new version of one."""
        project_id = required_id(request.project_id, field="project_id")
        check_label(request.name, field="name")
        content = _content(request)
        now = self._core.clock.time()

        def work(connection: Connection) -> Board:
            project = projects.get(connection, number=project_id)

            def put() -> str:
                number = boards.put(
                    connection,
                    project=project_id,
                    number=request.board_id,
                    name=request.name,
                    content=content,
                    based_on=request.based_on,
                    author=actor(),
                    now=now,
                )
                label = f"board {request.name} of project {project.workspace}/{project.name}"
                audit.record(connection, "set_board", label, now=now)
                return str(number)

            number = int(IDEMPOTENCY_KEYS.once(connection, request, put, now=now))
            return boards.get(connection, project=project_id, number=number)

        return pb2.SetBoardResponse(board=_message(await self._core.database.write(work)))

    async def GetBoard(self, request: pb2.GetBoardRequest, context: Any) -> pb2.GetBoardResponse:
        """Returns a version of a board, and which others there are."""
        number = required_id(request.board_id, field="board_id")

        def work(connection: Connection) -> tuple[Board, list[Board]]:
            board = boards.get(connection, project=request.project_id, number=number, version=request.version)
            return board, boards.versions(connection, number)

        board, versions = await self._core.database.read(work)
        return pb2.GetBoardResponse(
            board=_message(board), versions=[_message(version) for version in versions]
        )

    async def ListBoards(self, request: pb2.ListBoardsRequest, context: Any) -> pb2.ListBoardsResponse:
        """Lists boards."""
        query = boards.latest().where(
            *any_of(request, {"project_ids": tables.boards.c.project_number}),
            *seen_in(tables.workspaces.c.number),
        )
        page = await self._core.database.read(lambda c: boards.ORDERING.page(c, request, query))
        return pb2.ListBoardsResponse(
            boards=[_message(boards.board(row)) for row in page.rows], next_page_token=page.next_page_token
        )

    async def DeleteBoard(self, request: pb2.DeleteBoardRequest, context: Any) -> pb2.DeleteBoardResponse:
        """Deletes a board with all its versions."""
        number = required_id(request.board_id, field="board_id")
        now = self._core.clock.time()

        def work(connection: Connection) -> None:
            board = boards.get(connection, project=request.project_id, number=number)
            boards.delete(connection, number)
            label = f"board {board.name} of project {board.workspace}/{board.project}"
            audit.record(connection, "delete_board", label, now=now)

        await self._core.database.write(work)
        return pb2.DeleteBoardResponse()


def _content(request: pb2.SetBoardRequest) -> Content:
    kind = request.WhichOneof("content")
    if kind == "path":
        check_length(request.path, field="path", most=_PATH_LENGTH)
        if request.path.startswith(("/", "\\")) or not request.path.isprintable():
            raise invalid("path", "path is an address below the root of the page, without a slash first")
        return Content(path=request.path)
    if kind == "report":
        check_length(request.report, field="report", most=_REPORT_LENGTH)
        if "\0" in request.report:
            raise invalid("report", "report has a NUL character; remove it")
        return Content(report=request.report)
    raise invalid("content", "a board shows something: set path or report")


def _message(board: Board) -> pb2.Board:
    message = pb2.Board(
        board_id=board.number,
        project_id=board.project_number,
        project_name=board.project,
        workspace_id=board.workspace_number,
        workspace_name=board.workspace,
        name=board.name,
        version=board.version,
        author=board.author,
        update_time=to_timestamp(board.created_at),
    )
    if board.content.path is not None:
        message.path = board.content.path
    if board.content.report is not None:
        message.report = board.content.report
    return message
