# The lessons in a container, without a GPU: the environment of binder/.
#   docker build -t lessons . && docker run --rm -p 127.0.0.1:8888:8888 lessons
FROM python:3.11-slim-bookworm

ENV PIP_ROOT_USER_ACTION=ignore
RUN useradd --create-home --uid 1000 student
WORKDIR /home/student/cutegen_nb

# torch first: this layer stays while only the package changes.
COPY binder/ binder/
COPY constraints.txt ./
RUN pip install --no-cache-dir -r binder/requirements.txt

# Notebooks write beside themselves, so the copy belongs to the student.
COPY --chown=student . .
RUN bash binder/postBuild && rm -rf build

USER student
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "notebooks/01_quickstart.ipynb"]
